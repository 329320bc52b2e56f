import { fork } from "node:child_process";
import { once } from "node:events";
import type { Plan } from "./plan/plan.ts";
import type { Played } from "./play.ts";
import type { PromiseName } from "./promises.ts";

export interface Searched {
  readonly seeds: number;
  readonly steps: number;
  readonly seconds: number;
  /** How often each kind of fault came true. */
  readonly faults: Readonly<Record<string, number>>;
  readonly broken?: Found;
}

export interface Found {
  readonly seed: number;
  readonly promise: PromiseName;
  readonly message: string;
}

export interface Search {
  readonly from: number;
  readonly seeds: number;
  readonly jobs: number;
  /** Ends after so long. */
  readonly ms?: number;
  /** Loaded into each process first. */
  readonly imports?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Played instead of what the seeds stand for. */
  readonly plan?: Plan;
  readonly onProgress?: (so: { readonly seeds: number; readonly seconds: number }) => void;
}

/** What a process is sent: play so many seeds from here on; and what it answers. */
export interface Batch {
  readonly from: number;
  readonly count: number;
  readonly plan?: Plan;
}
export interface Outcome {
  readonly seeds: number;
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly broken?: Found;
}

const BATCH = 50;

/** Plays seeds in several processes at once, until one breaks a promise, all are played, or the time is over. */
export async function search({
  from,
  seeds,
  jobs,
  ms,
  imports = [],
  env,
  plan,
  onProgress,
}: Search): Promise<Searched> {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1_000;
  const faults: Record<string, number> = {};
  let next = from;
  let done = 0;
  let steps = 0;
  let broken: Found | undefined;
  const isOver = () =>
    broken !== undefined || next >= from + seeds || (ms !== undefined && seconds() * 1_000 >= ms);

  const player = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(new URL("player.ts", import.meta.url), {
        execArgv: [...process.execArgv, ...imports.flatMap((one) => ["--import", one])],
        ...(env && { env: { ...process.env, ...env } }),
      });
      const give = () => {
        if (isOver()) return child.disconnect();
        const count = Math.min(BATCH, from + seeds - next);
        child.send({ from: next, count, ...(plan && { plan }) } satisfies Batch);
        next += count;
      };
      child.on("message", (outcome: Outcome) => {
        done += outcome.seeds;
        steps += outcome.steps;
        for (const [kind, count] of Object.entries(outcome.faults))
          faults[kind] = (faults[kind] ?? 0) + count;
        if (outcome.broken && !(broken && broken.seed < outcome.broken.seed)) broken = outcome.broken;
        onProgress?.({ seeds: done, seconds: seconds() });
        give();
      });
      child.on("error", reject);
      child.on("exit", (code) => {
        if (code === 0) resolve();
        else reject(new Error(`A process of the search ended with ${code}, at seeds before ${next}`));
      });
      give();
    });
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, player));
  return { seeds: done, steps, seconds: seconds(), faults, ...(broken && { broken }) };
}

/** What a process is sent to play one plan, and to tell its story: it answers with how that came out. */
export interface Told {
  readonly plan: Plan;
}

export interface Player extends AsyncDisposable {
  /** One after the other. */
  play(plan: Plan): Promise<Played>;
}

/** Plays plans in a process of its own: whoever simulates takes the timers of all that runs in a process. */
export function startPlayer(): Player {
  const child = fork(new URL("player.ts", import.meta.url), { serialization: "advanced" });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`The process that plays plans ended with ${code}`);
  });
  ended.catch(() => {});
  return {
    play: async (plan) => {
      const played = once(child, "message");
      child.send({ plan } satisfies Told);
      const [answer] = (await Promise.race([played, ended])) as [Played];
      return answer;
    },
    [Symbol.asyncDispose]: async () => {
      child.disconnect();
      await ended.catch(() => {});
    },
  };
}
