import type { AgentContext } from "../agent.ts";
import { type Scene, wrongCall } from "./scene.ts";

/** Runs it once: dead before its result is listed, it is run again; after that, never. */
export function stepOf({ journal, through, within }: Scene, inner?: "inner"): AgentContext<unknown>["step"] {
  return async (name, run) => {
    if (typeof run !== "function") throw wrongCall("step", name, "a function");
    const value = await through(
      "step",
      name,
      async ({ key, at, alone, known }): Promise<unknown> => {
        if (known) return journal.read(known.kept);
        const { kept, value } = await journal.keep(await within(run), `The result of step ${key}`);
        await journal.append({ kind: "step", key, at, alone, ...kept });
        return value;
      },
      { inner: inner !== undefined },
    );
    return value as never;
  };
}
