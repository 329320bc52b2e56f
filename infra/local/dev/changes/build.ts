import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ENDING } from "../../../project.ts";
import { startServer } from "../../process.ts";
import type { BuildRequest } from "./builder.ts";
import type { Builds } from "./plan.ts";

const BUILDER = fileURLToPath(new URL(`builder${ENDING}`, import.meta.url));
const LONGEST_BUILD = 180_000;

/** Has a process of its own build what a change concerns. What can't be built is in the answer; only a lost builder throws. */
export async function buildChanged(request: BuildRequest): Promise<Builds> {
  const { out } = request;
  await mkdir(out, { recursive: true });
  const [asked, answer] = [join(out, "request.json"), join(out, "answer.json")];
  await rm(answer, { force: true });
  await writeFile(asked, JSON.stringify(request));
  const builder = await startServer(process.execPath, [BUILDER, asked, answer]);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    void builder.stop();
  }, LONGEST_BUILD);
  const code = await builder.exited;
  clearTimeout(timer);
  if (isLate)
    throw new Error(
      `The build took longer than ${LONGEST_BUILD / 60_000} minutes. Does an agent's file do something when it is imported?`,
    );
  const text = code === 0 ? await readFile(answer, "utf8").catch(() => undefined) : undefined;
  if (text === undefined)
    throw new Error(`The build ended with ${code}: ${builder.output().trim().slice(-2_000)}`);
  return JSON.parse(text) as Builds;
}
