import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { streamName } from "../../shared/task/names.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const work = agentOf(({ id }) => id);
const MSG_ID = "order-7";
/** Its message is gone, and its Msg-Id is still in the window. */
async function lose(b: Bench, id: string): Promise<number> {
  const there = await b.deps.bus.lookup(b.queue, id);
  await (await jetstreamManager(b.deps.nc)).streams.deleteMessage(streamName(b.queue), there?.seq ?? 0);
  return there?.seq ?? 0;
}
const events = async (b: Bench, id: string) => (await b.task(id)).history.map(({ event }) => event);

describe.each(oneOfEach)("$kind: a message with its submitter's own Msg-Id", ({ kind, here }) => {
  test.skipIf(!here)("that is lost inside the window is published anew, under another", async () => {
    await using b = await bench(nats, kind, work);
    await b.submit({}, { id: "t", msgId: MSG_ID });
    expect(await b.task("t")).toMatchObject({ state: "dispatched", seq: 1 });
    expect(await lose(b, "t")).toBe(1);
    // To submit it again changes nothing: it was there, and is not this caller's to repeat.
    expect(await b.submit({}, { id: "t", msgId: MSG_ID })).toMatchObject({ stoppedBy: "document" });
    expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(1);
    expect(await b.drain()).toEqual({ completed: 1 });
    const { settled } = await b.task("t");
    expect(settled.map(({ seq, outcome }) => [seq, outcome])).toEqual([
      [1, "lost"],
      [2, "completed"],
    ]);
    // A second task under the same Msg-Id is a repeat of this operation, now as before.
    const second = b.submit({ n: 2 }, { id: "u", msgId: MSG_ID });
    await expect(second).rejects.toMatchObject({ code: "msg_id_taken" });
    expect(await b.task("u")).toMatchObject({ state: "failed", error: { code: "msg_id_taken" } });
  });
});

test("one for later is known by its sequence too", async () => {
  await using b = await bench(nats, "nats-kv", work);
  await b.submit({}, { id: "t", msgId: MSG_ID, at: Date.now() + 60_000 });
  expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(1);
  expect(await events(b, "t")).toEqual(["submit", "dispatch", "published"]);
  await lose(b, "t");
  expect(await dispatchDue(later(b.deps, 130_000), AGENT)).toBe(1);
  expect(await b.drain()).toEqual({ completed: 1 });
});

test("whose submitter died before it could say so: it may be a repeat, and is a dead letter", async () => {
  await using b = await bench(nats, "nats-kv", work);
  const { replace } = b.deps.store;
  Object.assign(b.deps.store, { replace: () => Promise.reject(new Error("killed here")) });
  expect(await b.submit({}, { id: "t", msgId: MSG_ID })).toMatchObject({ kind: "accepted" });
  Object.assign(b.deps.store, { replace });
  expect(b.deps.logged).toContainEqual({
    level: "warn",
    event: "publish.unnoted",
    fields: { task: "t", seq: 1, reason: "killed here" },
  });
  await lose(b, "t");
  expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(0);
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "msg_id_taken" } });
});

test("a runner that is faster than the note goes on, and nobody else's document gets one", async () => {
  await using b = await bench(nats, "nats-kv", work);
  const { replace } = b.deps.store;
  const { deps } = b;
  let drained = false;
  Object.assign(deps.store, {
    replace: async (...args: Parameters<typeof replace>) => {
      const [{ history }] = args;
      if (history.at(-1)?.event === "published" && !drained) {
        drained = true;
        expect(await b.drain()).toEqual({ completed: 1 });
      }
      return replace(...args);
    },
  });
  await b.submit({}, { id: "t", msgId: MSG_ID });
  expect(drained).toBe(true);
  expect(await events(b, "t")).toEqual(["submit", "claim", "complete"]);
  await b.submit({}, { id: "other" });
  expect(await events(b, "other")).toEqual(["submit"]);
  expect(await b.drain()).toEqual({ completed: 1 });
});
