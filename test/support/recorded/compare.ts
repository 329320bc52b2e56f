import { isDeepStrictEqual } from "node:util";
import { isPawlError } from "../../../shared/errors/errors.ts";

/** A step, and what it was answered in the world that it was made up on. */
export interface Recorded<Step> {
  readonly step: Step;
  readonly answer: unknown;
}

/** How far a recording was compared; not to its end where the time has run out for what would follow. */
export interface Compared {
  readonly steps: number;
  readonly of: number;
}

/** An answer as it is written down: an error is one too. */
export async function written(answer: Promise<unknown>): Promise<unknown> {
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? null)) as unknown;
  return answer.then(plain, (error: unknown) => {
    if (isPawlError(error)) return `error ${error.code}`;
    throw error;
  });
}

/** Looks come again for so long until they are the same: a server tells of itself with a delay. */
const PATIENCE = 3_000;

/**
 * Does the steps again, in another world, up to the first that is answered otherwise. `isOver`: what would be answered
 * from now on follows from how slow this machine is.
 */
export async function compare<Step extends { readonly do: string }>(
  recorded: readonly Recorded<Step>[],
  name: string,
  again: (one: Recorded<Step>) => Promise<unknown>,
  { looks = [], isOver = () => false }: { looks?: readonly string[]; isOver?: () => boolean } = {},
): Promise<Compared> {
  for (const [i, one] of recorded.entries()) {
    const expected = await written(Promise.resolve(one.answer));
    const since = performance.now();
    let answer = await written(again(one));
    const isLook = looks.includes(one.step.do);
    while (isLook && !isDeepStrictEqual(answer, expected) && performance.now() - since < PATIENCE) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      answer = await written(again(one));
    }
    if (isOver()) return { steps: i, of: recorded.length };
    if (!isDeepStrictEqual(answer, expected)) throw new Error(told(recorded.slice(0, i + 1), name, answer));
  }
  return { steps: recorded.length, of: recorded.length };
}

/** All that led there, so that it can be played by hand. */
function told<Step>(prefix: readonly Recorded<Step>[], name: string, answer: unknown): string {
  const lines = prefix.map(
    ({ step, answer: said }) => `  ${JSON.stringify(step)} -> ${JSON.stringify(said)}`,
  );
  return `${name} differs at step ${prefix.length}, where the real one answers ${JSON.stringify(answer)}:\n${lines.join("\n")}`;
}
