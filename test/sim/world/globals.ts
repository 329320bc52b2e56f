import { createHash } from "node:crypto";
import type { Random } from "./random.ts";

/**
 * What the code under test asks of the language itself, and what no seed decides: random numbers, digests that other
 * threads compute, timers. While a simulation runs these are the simulation's own; the code under test is unchanged.
 */
export interface Globals {
  /** Where random numbers come from now: each simulation has its own. */
  use(random: Random): void;
  /** Runs timers of 0 ms, and what follows from them, until nothing more is to be done at this moment. */
  settle(): Promise<void>;
  restore(): void;
}

const realImmediate = setImmediate;

/** All promises that can go on have gone on when this one does. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve));
}

export function takeGlobals(): Globals {
  const { setTimeout: realTimeout } = globalThis;
  const { random: realRandom } = Math;
  const { randomUUID, subtle } = crypto;
  const { digest } = subtle;
  let random: Random | undefined;
  let soon: (() => void)[] = [];
  const known = new Map<string, ArrayBuffer>();

  const own = (name: "randomUUID", value: unknown) =>
    Object.defineProperty(crypto, name, { value, configurable: true, writable: true });
  own("randomUUID", () => random?.uuid() ?? randomUUID.call(crypto));
  Object.defineProperty(subtle, "digest", {
    configurable: true,
    writable: true,
    value: async (algorithm: string, data: Uint8Array) => {
      if (algorithm !== "SHA-256" || !random)
        return digest.call(subtle, algorithm, data as Uint8Array<ArrayBuffer>);
      const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
      const before = known.get(text);
      if (before) return before;
      const made = createHash("sha256").update(data).digest();
      const buffer = made.buffer.slice(made.byteOffset, made.byteOffset + made.byteLength) as ArrayBuffer;
      if (known.size > 5_000) known.clear();
      known.set(text, buffer);
      return buffer;
    },
  });
  Math.random = () => random?.next() ?? realRandom();
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    if (!random) return realTimeout(run, ms);
    if (ms !== 0) throw new Error(`a real timer of ${ms} ms was asked for in virtual time`);
    soon.push(run);
    return undefined;
  }) as unknown as typeof setTimeout;

  return {
    use: (next) => {
      random = next;
      soon = [];
    },
    settle: async () => {
      await microtasks();
      while (soon.length > 0) {
        const due = soon;
        soon = [];
        for (const run of due) run();
        await microtasks();
      }
    },
    restore: () => {
      random = undefined;
      globalThis.setTimeout = realTimeout;
      Math.random = realRandom;
      own("randomUUID", randomUUID);
      Object.defineProperty(subtle, "digest", { value: digest, configurable: true, writable: true });
    },
  };
}
