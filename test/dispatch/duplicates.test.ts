import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defineAgent } from "../../shared/agent.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { encodeEnvelope } from "../../shared/task/envelope.ts";
import { hashInput } from "../../shared/values/json.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";

/** Counts its own executions: an account that no document has a part in. */
function countingAgent() {
  const runs: string[] = [];
  return { runs, agent: defineAgent({ run: ({ id }) => void runs.push(id) }) };
}

/** The very message that the submit published. */
async function sameMessage(b: Bench, id: string, msgId = `submit:${id}`) {
  const { input, createdAt, history, agent, lane } = await b.task(id);
  const [first] = history;
  const stamp = first?.stamp ?? "";
  const by = first?.by ?? "";
  const data = encodeEnvelope({
    id,
    agent,
    lane,
    input,
    inputHash: hashInput(input),
    at: createdAt,
    stamp,
    by,
  });
  return { taskId: id, data, msgId, headers: { "Pawl-Dispatch": "1", "Pawl-Revision": "1" } };
}

const WINDOW = 3_000;
const windowPassed = () => new Promise((resolve) => setTimeout(resolve, WINDOW + 50));

describe.each(oneOfEach)("$kind: the same message published again", ({ kind, here }) => {
  test.skipIf(!here)("is executed once, and the layer that stopped it is known", async () => {
    await using nats = await testNats();
    const { runs, agent } = countingAgent();
    await using b = await bench(nats, kind, agent, { duplicateWindow: WINDOW });

    // Inside the window, while it is queued and after it is done: the stream's window stops it.
    await b.submit({ n: 1 }, { id: "in-window" });
    const inWindow = await sameMessage(b, "in-window");
    expect(await b.deps.bus.publish(b.queue, inWindow)).toMatchObject({ kind: "duplicate" });
    expect(await b.drain()).toEqual({ completed: 1 });
    expect(await b.deps.bus.publish(b.queue, inWindow)).toMatchObject({ kind: "duplicate" });

    // With another Msg-Id, or after the window, while it is queued: the occupied subject stops it.
    await b.submit({ n: 2 }, { id: "queued" });
    expect(await b.deps.bus.publish(b.queue, await sameMessage(b, "queued", "another"))).toEqual({
      kind: "occupied",
    });
    await windowPassed();
    expect(await b.deps.bus.publish(b.queue, await sameMessage(b, "queued"))).toEqual({ kind: "occupied" });
    expect(await b.drain()).toEqual({ completed: 1 });

    // Done, and no longer in the stream: the document stops it, and its sequence is settled as a duplicate.
    const byDocument = async (id: string, msgId?: string) => {
      expect(await b.deps.bus.publish(b.queue, await sameMessage(b, id, msgId)), id).toMatchObject({
        kind: "stored",
      });
      expect(await b.drain(), id).toEqual({ surplus: 1 });
      expect((await b.task(id)).settled.map((one) => one.outcome)).toEqual(["completed", "duplicate"]);
    };
    await byDocument("queued", "yet-another");
    await windowPassed();
    await byDocument("in-window");

    // A restarted server has forgotten the ids of acked messages, inside the window too.
    await b.submit({ n: 3 }, { id: "restarted" });
    expect(await b.drain()).toEqual({ completed: 1 });
    await nats.halt("SIGTERM");
    await nats.restart();
    await expect
      .poll(() => b.deps.bus.state(b.queue).catch(() => undefined), { timeout: 10_000 })
      .toBeDefined();
    await byDocument("restarted");

    expect(runs).toEqual(["in-window", "queued", "restarted"]);
    for (const id of runs)
      expect(await b.task(id)).toMatchObject({ state: "completed", executions: 1, fence: 1 });
  });

  test.skipIf(!here)("submitting the same id again says which layer stopped it, and records it", async () => {
    await using nats = await testNats();
    const { runs, agent } = countingAgent();
    await using b = await bench(nats, kind, agent, { duplicateWindow: WINDOW });
    const again = () => b.submit({ n: 1 }, { id: "x" });
    expect(await again()).toMatchObject({ kind: "accepted" });
    expect(await again()).toMatchObject({ kind: "already", stoppedBy: "window", state: "dispatched" });
    expect(await b.submit({ n: 1 }, { id: "x", msgId: "mine" })).toMatchObject({ stoppedBy: "subject" });
    expect(await b.drain()).toEqual({ completed: 1 });
    expect(await again()).toMatchObject({ kind: "already", stoppedBy: "document", state: "completed" });
    await windowPassed();
    expect(await again()).toMatchObject({ kind: "already", stoppedBy: "document" });
    expect(await b.task("x")).toMatchObject({
      publishDuplicates: { window: 1, subject: 1, document: 2 },
      executions: 1,
    });
    await expect(b.submit({ n: 2 }, { id: "x" })).rejects.toMatchObject({ code: "id_conflict" });
    expect(runs).toEqual(["x"]);
  });

  test.skipIf(!here)("20 submits of one id at once are one task", async () => {
    await using nats = await testNats();
    const { runs, agent } = countingAgent();
    await using b = await bench(nats, kind, agent);
    // Their counts are in each other's way: on a slow machine for longer than the 15 s that a submitter gives them.
    const clock = { ...b.deps.clock, monotonic: () => performance.now() / 10 };
    const submission = { agent: AGENT, lanes: 1, id: "x", input: { n: 1 } };
    const one = () => submit({ ...b.deps, clock }, submission);
    const results = await Promise.all(Array.from({ length: 20 }, one));
    expect(results.filter((result) => result.kind === "accepted").length).toBeGreaterThanOrEqual(1);
    await b.drain();
    expect(runs).toEqual(["x"]);
    const { publishDuplicates, executions } = await b.task("x");
    const { window, subject, document } = publishDuplicates;
    expect({
      executions,
      counted: window + subject + document + results.filter((r) => r.kind === "accepted").length,
    }).toEqual({
      executions: 1,
      counted: 20,
    });
  });
});

test("a submitter that died between its write and its publish is healed by submitting again", async () => {
  await using nats = await testNats();
  const { runs, agent } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent);
  const died = { ...b.deps, bus: { ...b.deps.bus, publish: () => Promise.reject(new Error("killed here")) } };
  const { submit } = await import("../../shared/dispatch/submit.ts");
  const wanted = { agent: "tested", lanes: 1, input: { n: 1 }, id: "orphan" };
  // An error that is none of ours is not even rolled back: exactly what a killed process leaves.
  const store = { ...b.deps.store, replace: () => Promise.reject(new Error("killed here")) };
  await expect(submit({ ...died, store }, wanted)).rejects.toThrow("killed here");
  expect(await b.task("orphan")).toMatchObject({ state: "dispatched" });
  expect(await b.drain()).toEqual({});
  expect(await b.submit({ n: 1 }, { id: "orphan" })).toMatchObject({ kind: "accepted" });
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(runs).toEqual(["orphan"]);
});

test("a message published directly is its own submit; the same id with another input is a conflict, and kept", async () => {
  await using nats = await testNats();
  const { runs, agent } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent);
  const direct = (input: object) => ({
    taskId: "direct",
    data: new TextEncoder().encode(JSON.stringify({ v: 1, input })),
    msgId: randomUUID(),
    headers: {},
  });
  await b.deps.bus.publish(b.queue, direct({ a: 1, b: [2] }));
  expect(await b.drain()).toEqual({ completed: 1 });
  await b.deps.bus.publish(b.queue, direct({ b: [2], a: 1 }));
  expect(await b.drain()).toEqual({ surplus: 1 });
  await b.deps.bus.publish(b.queue, direct({ a: 2 }));
  expect(await b.drain()).toEqual({ surplus: 1 });
  const task = await b.task("direct");
  expect(task).toMatchObject({ state: "completed", executions: 1, input: { a: 1, b: [2] } });
  expect(task.settled.map((one) => one.outcome)).toEqual(["completed", "duplicate", "conflict"]);
  const { sha256 } = await import("../../shared/values/json.ts");
  const conflict = task.settled[2];
  const kept = await b.task(`stray-${sha256(`${conflict?.queue}:${conflict?.seq}`).slice(0, 32)}`);
  expect(kept).toMatchObject({ state: "failed", error: { code: "id_conflict" }, input: { a: 2 } });
  expect(runs).toEqual(["direct"]);
});
