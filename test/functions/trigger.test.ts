import { expect, test } from "vitest";
import { triggers } from "../../functions/wiring/trigger.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { serveHttp } from "../support/http/http.ts";
import { testNats, wired } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

const runSecret = "a-secret-of-the-tests";
/** Calls without an identity. */
const nobody = async () => ({});

/** Counts the calls of each agent's function. */
async function counting(onCall: () => Promise<void> = async () => {}) {
  const calls: string[] = [];
  const served = await serveHttp(async (request) => {
    calls.push(new URL(request.url).pathname.slice(1));
    await onCall();
    return new Response(null, { status: 202 });
  });
  return Object.assign(served, { calls, config: { runSecret, wakeUrl: `${served.url}/{agent}` } });
}

test("an agent is woken at once, and once more after a pause for all that came meanwhile", async () => {
  await using functions = await counting();
  const { trigger, done } = triggers(functions.config, () => {}, nobody, 300);
  for (let i = 0; i < 5_000; i++) for (const agent of ["a", "b"]) trigger(agent);
  await until("both were called again", async () => functions.calls.length === 4);
  expect(functions.calls.toSorted()).toEqual(["a", "a", "b", "b"]);
  await done();
  expect(functions.calls).toHaveLength(4);
  trigger("a");
  await done();
  expect(functions.calls).toHaveLength(5);
});

test("one that was woken once is not called again for nothing", async () => {
  await using functions = await counting();
  const { trigger, hurry, done } = triggers(functions.config, () => {}, nobody, 60_000);
  trigger("a");
  hurry();
  await done();
  expect(functions.calls).toEqual(["a"]);
  // What is owed is sent by whoever can't wait for the pause to end.
  trigger("a");
  trigger("a");
  hurry();
  await until("it is sent", async () => functions.calls.length === 3);
  await done();
  expect(functions.calls).toHaveLength(3);
});

test("a sweep of a hundred sends a handful, the last after the last message is there", async () => {
  await using nats = await testNats();
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => {}),
  );
  const there: number[] = [];
  await using functions = await counting(async () => {
    there.push((await b.deps.bus.state(b.queue)).pending);
  });
  const at = Date.now() + 60_000;
  const ids = Array.from({ length: 100 }, (_, i) => `t${i}`);
  await Promise.all(ids.map((id) => submit(b.deps, { agent: AGENT, lanes: 1, id, input: {}, at })));
  const begun = Date.now();
  {
    await using waking = await wired({ ...b.world.config, ...functions.config });
    expect(await dispatchDue(later(waking, 120_000), AGENT)).toBe(100);
  }
  // One at once, one for every three seconds that it took, and the last.
  expect(there.length).toBeGreaterThanOrEqual(2);
  expect(there.length).toBeLessThanOrEqual(2 + (Date.now() - begun) / 3_000);
  expect(there.at(-1)).toBe(100);
});
