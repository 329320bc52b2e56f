import type { AgentContext } from "../agent.ts";
import type { Asked } from "../journal/asked.ts";
import { type Scene, wrongCall } from "./scene.ts";

/** Runs it once: dead before its result is listed, it is run again; after that, never. */
export function stepOf(scene: Scene): AgentContext<unknown>["step"] {
  return async (name, run) => (await runStep(scene, name, run)) as never;
}

/** `asked`: what a conversation gives to a tool, of which the step is a part. */
export async function runStep(
  { journal, through, within, deps: { clock } }: Scene,
  name: string,
  run: () => unknown,
  asked?: () => { asked?: Asked },
): Promise<unknown> {
  if (typeof run !== "function") throw wrongCall("step", name, "a function");
  return through(
    "step",
    name,
    async ({ key, at, alone, known }, trace): Promise<unknown> => {
      if (known) return journal.read(known.kept);
      const begun = clock.monotonic();
      const returned = await within(run, trace);
      const took = Math.round(clock.monotonic() - begun);
      const { kept, value } = await journal.keep(returned, `The result of step ${key}`);
      await journal.append({ kind: "step", key, at, alone, took, ...asked?.(), ...kept });
      return value;
    },
    { inner: asked !== undefined },
  );
}
