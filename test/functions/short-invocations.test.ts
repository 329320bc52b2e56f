import { expect, test } from "vitest";
import { startModel } from "../../infra/local/model.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { lost } from "../../shared/journal/budget.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import { observer } from "../support/observer.ts";
import { bundle, deploy, post, varsOf } from "../support/servers/platforms.ts";
import { hasEmulator, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** What a Worker has after it answered, less the grace and a request: two seconds in this test, fifteen by default. */
const given = { ackWait: 6_000, stopGrace: 27_000, requestTimeout: 1_000 };

test("a woken Worker does not begin a model's turn that it can't finish: one with more time does, and pays once", async () => {
  await using nats = await testNats();
  // Longer than a woken Worker has.
  await using model = await startModel(() => ({
    content: [{ type: "text", text: "written" }],
    delay: 4_000,
  }));
  const w = world(nats, hasEmulator ? "firestore" : "nats-kv", given);
  await using deps = await observer(w);
  const queue = queueOf(deps, { agent: "writer", lane: 0 });
  await deps.bus.ensure(queue);
  const env = { ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url };
  await using worker = await deploy(await bundle("writer", "cloudflare"), varsOf(w, "cloudflare", env));
  await submit(deps, { agent: "writer", lanes: 1, id: "t", input: {} });
  const task = async () => (await deps.store.get("t"))?.task;
  const ended = () => worker.log().match(/"event":"function\.ran".*/g) ?? [];

  const wake = async () => {
    const before = ended().length;
    expect((await post(worker.url, { prefer: "respond-async" })).status).toBe(202);
    return until("it is over", async () => ended().length > before && ended().at(-1));
  };
  // The step before the turn is done, and the turn left to another.
  expect(await wake()).toMatch(/handed-off/);
  expect(await task()).toMatchObject({ state: "dispatched", released: true, needs: 300_000, executions: 1 });
  // Woken again it does not even claim it.
  expect(await wake()).toMatch(/too-short/);
  expect(await task()).toMatchObject({ state: "dispatched", executions: 1 });
  expect(model.requests).toHaveLength(0);

  // The minute's cron has a quarter of an hour.
  await worker.cron();
  expect(await task()).toMatchObject({ state: "completed", result: "written", executions: 2, attempts: 0 });
  expect(model.requests).toHaveLength(1);
  const entries = (await readJournal(deps, "t", () => {}))?.entries ?? [];
  expect(lost(entries).turns).toBe(0);
  expect(entries.filter(({ kind }) => kind === "step")).toHaveLength(1);
  expect(await deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
});
