import { createInterface } from "node:readline/promises";
import { PawlError } from "../../shared/errors/errors.ts";
import { type Choice, checkOneOf, checkProjectName, PLATFORMS, STORES, USUAL } from "./choice.ts";

/** Asks for what was not given, each until the answer will do. */
export async function ask(given: Partial<Choice>): Promise<Choice> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const one = async <Answer>(
    question: string,
    usual: string,
    check: (text: string) => Answer,
  ): Promise<Answer> => {
    for (;;) {
      const text = (await lines.question(`${question} (${usual}) `)).trim() || usual;
      try {
        return check(text);
      } catch (error) {
        process.stderr.write(`  ${(error as Error).message}\n`);
      }
    }
  };
  try {
    const name = given.name ?? (await one("Name of the project?", USUAL.name, checkProjectName));
    const platform =
      given.platform ??
      (await one(`Where will it run: ${PLATFORMS.join(" or ")}?`, USUAL.platform, (text) =>
        checkOneOf("The platform", PLATFORMS, text),
      ));
    const store =
      given.store ??
      (await one(`Where are tasks kept: ${STORES.join(" or ")}?`, USUAL.store, (text) =>
        checkOneOf("The store", STORES, text),
      ));
    return { name, platform, store };
  } catch (error) {
    // By Ctrl-C, or because nothing more came.
    if ((error as Error).name !== "AbortError") throw error;
    throw new PawlError("usage", "Stopped at a question: nothing was written");
  } finally {
    lines.close();
  }
}
