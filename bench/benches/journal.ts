import { type Agent, defineAgent } from "../../shared/agent.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { Bench, Figure } from "../bench.ts";
import { AGENT, drain, enqueue, openPawl } from "../pawl.ts";
import { interleaved, timed } from "../rounds.ts";
import { median } from "../spread.ts";

const STEPS = 1_000;
/** Around the 100th, and before the last. */
const NEAR = 0.05;

/** A task of so many null steps: how long each took, in milliseconds. */
async function stepTimes(steps: number): Promise<number[]> {
  await using deps = await openPawl();
  const times: number[] = [];
  const agent = defineAgent({
    run: async ({ step }) => {
      for (let i = 0, last = performance.now(); i < steps; i++) {
        await step(`step-${i}`, () => null);
        const now = performance.now();
        times.push(now - last);
        last = now;
      }
      return null;
    },
  }) as Agent;
  await enqueue(deps, 1);
  await drain(deps, agent, 1);
  return times;
}

const around = (times: readonly number[], at: number) => {
  const near = Math.max(2, Math.round(times.length * NEAR));
  return median(times.slice(Math.max(0, at - near), at + near));
};

/**
 * A runner is stopped in the last step of a task, and another takes over: how long until it is there again, from its start
 * on. Of a task of one step that is what any takeover costs.
 */
async function resumeTime(steps: number): Promise<number> {
  await using deps = await openPawl();
  await enqueue(deps, 1);
  const reached = Promise.withResolvers<void>();
  const stop = new AbortController();
  const through = (last: () => unknown): Agent =>
    defineAgent({
      run: async ({ step, signal }) => {
        for (let i = 0; i < steps - 1; i++) await step(`step-${i}`, () => null);
        await step("last", async () => {
          last();
          if (!stop.signal.aborted)
            await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
          return null;
        });
        return null;
      },
    }) as Agent;
  const first = serve(deps, {
    name: AGENT,
    agent: through(reached.resolve),
    mode: "forever",
    stop: stop.signal,
  });
  await reached.promise;
  stop.abort();
  await first;
  const again = Promise.withResolvers<void>();
  const end = new AbortController();
  let second: Promise<unknown> = Promise.resolve();
  const ms = await timed(() => {
    second = serve(deps, { name: AGENT, agent: through(again.resolve), mode: "forever", stop: end.signal });
    return again.promise;
  });
  end.abort();
  await second;
  return ms;
}

export const journalBenches = {
  "long-journal": {
    what: "1,000 null steps in one task, NATS KV; and a resume in the last of them",
    floor: "a step around the 100th; printed: a resume in the only step",
    required: "<= 1.2 × a step",
    run: async (stage): Promise<Figure[]> => {
      const steps = stage.size(STEPS, 60);
      const { times = [] } = await interleaved(stage, { times: () => stepTimes(steps) });
      const resumes = await interleaved(stage, {
        one: () => resumeTime(1),
        many: () => resumeTime(steps),
      });
      return [
        {
          what: `a step, at ${steps}`,
          unit: "ms",
          pawl: times.map((all) => around(all, steps)),
          against: { name: `a step, at ${steps / 10}`, values: times.map((all) => around(all, steps / 10)) },
          required: { most: 1.2 },
        },
        {
          what: `resumed at step ${steps - 1}, from the runner's start`,
          unit: "ms",
          pawl: resumes.many ?? [],
          against: { name: "resumed at step 0", values: resumes.one ?? [] },
        },
      ];
    },
  },
} satisfies Record<string, Bench>;
