import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { testNats, wired } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const TASKS = 100;

/** What a message that a runner sends is for. */
function kindOf(subject: string): string {
  // A sweep's look at the bucket is a pull of its own.
  if (/\.MSG\.NEXT\.(?!KV_)/.test(subject)) return "pulls";
  if (subject.startsWith("$JS.ACK.")) return "words";
  const [, key] = /^\$KV\.[^.]+\.(task|journal)\./.exec(subject) ?? [];
  if (key) return key === "task" ? "writes" : "appends";
  return /\.events\./.test(subject) ? "hints" : "others";
}

/** How many messages of which kind a runner sends for tasks with so many steps, which somebody else submits. */
async function sent(steps: number): Promise<Record<string, number>> {
  const over = Promise.withResolvers<void>();
  let done = 0;
  const agent = agentOf(async ({ step }) => {
    for (let i = 0; i < steps; i++) await step(`s${i}`, () => i);
    if (++done === TASKS) over.resolve();
  });
  await using b = await bench(nats, "nats-kv", agent);
  await using runner = await wired(b.world.config);
  const published = vi.spyOn(runner.nc, "publish");
  const stop = new AbortController();
  const served = serve(runner, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  for (let i = 0; i < TASKS; i++) await b.submit({ i });
  await over.promise;
  stop.abort();
  await served;
  const kinds = Object.groupBy(published.mock.calls, ([subject]) => kindOf(subject));
  return Object.fromEntries(Object.entries(kinds).map(([kind, calls]) => [kind, calls?.length ?? 0]));
}

test("on NATS KV a task costs its runner one pull, two writes, one ack; a step one write; and a hint for each write at most", async () => {
  for (const steps of [0, 3]) {
    const { pulls = 0, writes, words = 0, hints = 0, appends = 0 } = await sent(steps);
    expect(writes).toBe(2 * TASKS);
    expect(appends).toBe(steps * TASKS);
    // A heartbeat of a task that took long on a busy machine, a pull that brought nothing.
    for (const count of [pulls, words]) {
      expect(count).toBeGreaterThanOrEqual(TASKS);
      expect(count).toBeLessThanOrEqual(1.2 * TASKS);
    }
    expect(hints).toBeLessThanOrEqual((2 + steps) * TASKS);
  }
});
