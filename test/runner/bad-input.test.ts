import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { serve } from "../../shared/runner/serve.ts";
import { checkInput } from "../../shared/task/envelope.ts";
import { subjectPrefix } from "../../shared/task/names.ts";
import { sha256 } from "../../shared/values/json.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { oneOfEach, testNats, wired } from "../support/servers/stores.ts";

const runs: string[] = [];
const agent = defineAgent({ run: ({ id }) => void runs.push(id) });

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());
beforeEach(() => {
  runs.length = 0;
});

const bytes = (text: string) => new TextEncoder().encode(text);
const deep = `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`;
const notUtf8 = new Uint8Array([0x7b, 0xff, 0xfe, 0x00, 0x7d]);

/** What somebody may put on the subject by hand, and what is kept of it. */
const poison: { name: string; data: Uint8Array; code: string; says: RegExp }[] = [
  { name: "nothing", data: bytes(""), code: "envelope_invalid", says: /not JSON/ },
  { name: "not JSON", data: bytes("hello"), code: "envelope_invalid", says: /not JSON/ },
  { name: "not UTF-8", data: notUtf8, code: "envelope_invalid", says: /not UTF-8/ },
  { name: "not an object", data: bytes("[1]"), code: "envelope_invalid", says: /not a JSON object/ },
  {
    name: "JSON without an envelope",
    data: bytes('{"text":"hi"}'),
    code: "envelope_invalid",
    says: /no envelope version/,
  },
  {
    name: "an older version",
    data: bytes('{"v":0,"input":{}}'),
    code: "envelope_version",
    says: /is 0; this runner speaks 1/,
  },
  {
    name: "a newer version",
    data: bytes('{"v":2,"input":{}}'),
    code: "envelope_version",
    says: /is 2; this runner speaks 1/,
  },
  {
    name: "a version that is none",
    data: bytes('{"v":{},"input":{}}'),
    code: "envelope_version",
    says: /is \{\}/,
  },
  { name: "no input", data: bytes('{"v":1}'), code: "input_invalid", says: /missing/ },
  {
    name: "an input that is no object",
    data: bytes('{"v":1,"input":"x"}'),
    code: "input_invalid",
    says: /a string/,
  },
  {
    name: "another task's id",
    data: bytes('{"v":1,"id":"other","input":{}}'),
    code: "envelope_invalid",
    says: /"other"/,
  },
  {
    name: "another agent",
    data: bytes('{"v":1,"agent":"other","input":{}}'),
    code: "agent_mismatch",
    says: /"other"/,
  },
  {
    name: "10,000 levels",
    data: bytes(`{"v":1,"input":${deep}}`),
    code: "envelope_invalid",
    says: /10001 levels/,
  },
  {
    name: "__proto__",
    data: bytes('{"v":1,"input":{"a":[{"__proto__":{"x":1}}]}}'),
    code: "envelope_invalid",
    says: /input\.a\.0 has a key "__proto__"/,
  },
  {
    name: "too large an input",
    data: bytes(`{"v":1,"input":{"x":"${"y".repeat(600_000)}"}}`),
    code: "input_too_large",
    says: /limit is 524288 \(PAWL_INPUT_LIMIT\)/,
  },
];

async function publishRaw(b: Bench, token: string, data: Uint8Array): Promise<number> {
  const { jetstream } = await import("@nats-io/jetstream");
  return (await jetstream(b.deps.nc).publish(subjectPrefix(b.queue) + token, data)).seq;
}

const strayId = async (b: Bench, seq: number) => {
  const { streamName } = await import("../../shared/task/names.ts");
  return `stray-${sha256(`${streamName(b.queue)}:${seq}`).slice(0, 32)}`;
};

describe.each(oneOfEach)("$kind: poison", ({ kind, here }) => {
  test.skipIf(!here)("becomes a failed document with its bytes, and leaves the queue", async () => {
    await using b = await bench(nats, kind, agent);
    const ids = new Map<string, (typeof poison)[number]>();
    for (const one of poison) {
      const id = randomUUID();
      ids.set(id, one);
      await publishRaw(b, id, one.data);
    }
    await b.submit({ fine: true }, { id: "behind" });
    expect(await b.drain()).toEqual({ "dead-letter": poison.length, completed: 1 });
    for (const [id, { name, data, code, says }] of ids) {
      const task = await b.task(id);
      expect(task, name).toMatchObject({
        state: "failed",
        error: { code, phase: "envelope" },
        executions: 0,
      });
      if (task.state !== "failed" || !task.raw) throw new Error(`${name}: no raw bytes`);
      expect(task.error.message, name).toMatch(says);
      const kept = Buffer.from(task.raw.base64, "base64");
      expect(task.raw.bytes, name).toBe(data.length);
      expect(kept.equals(Buffer.from(data.subarray(0, 512 * 1024))), name).toBe(true);
      expect(task.raw.truncated, name).toBe(data.length > 512 * 1024);
      expect(task.settled, name).toHaveLength(1);
    }
    expect(runs).toEqual(["behind"]);
    expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test.skipIf(!here)("with an id that can't be one is kept under an id made from its sequence", async () => {
    await using b = await bench(nats, kind, agent);
    for (const token of ["a:b", "ünïcode", "x".repeat(129), "__x__", "a%20b"]) {
      const seq = await publishRaw(b, token, bytes('{"v":1,"input":{}}'));
      expect(await b.drain(), token).toEqual({ "dead-letter": 1 });
      expect(await b.task(await strayId(b, seq)), token).toMatchObject({
        state: "failed",
        error: { code: "task_id_invalid" },
        raw: { subject: subjectPrefix(b.queue) + token },
      });
    }
  });

  test.skipIf(!here)("under a real task's id leaves the task as it was, and both know of it", async () => {
    await using b = await bench(nats, kind, agent);
    await b.submit({ n: 1 }, { id: "real" });
    expect(await b.drain()).toEqual({ completed: 1 });
    const seq = await publishRaw(b, "real", bytes("junk"));
    expect(await b.drain()).toEqual({ "dead-letter": 1 });
    expect(await b.task(await strayId(b, seq))).toMatchObject({
      state: "failed",
      error: { code: "envelope_invalid" },
    });
    const real = await b.task("real");
    expect(real).toMatchObject({ state: "completed", executions: 1 });
    expect(real.settled).toMatchObject([{ outcome: "completed" }, { seq, outcome: "conflict" }]);
  });

  test.skipIf(!here)(
    "a dispatched message whose document is gone is a dead letter with its input",
    async () => {
      await using b = await bench(nats, kind, agent);
      const envelope = {
        v: 1,
        id: "gone",
        agent: "tested",
        at: 1,
        stamp: "s",
        by: "x",
        input: { kept: true },
      };
      const message = { taskId: "gone", data: bytes(JSON.stringify(envelope)), msgId: "m" };
      await b.deps.bus.publish(b.queue, {
        ...message,
        headers: { "Pawl-Dispatch": "1", "Pawl-Revision": "1.000000000" },
      });
      expect(await b.drain()).toEqual({ "dead-letter": 1 });
      expect(await b.task("gone")).toMatchObject({
        state: "failed",
        error: { code: "document_missing" },
        input: { kept: true },
      });
      expect(runs).toEqual([]);
    },
  );
});

describe("a task that this runner can't read, though another could", () => {
  test("fails itself, with its input, instead of staying dispatched for ever", async () => {
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({ text: "x".repeat(5_000) }, { id: "large" });
    const { settings } = b.world.config;
    await using small = await wired({ ...b.world.config, settings: { ...settings, inputLimit: 1_000 } });
    expect(
      await serve(small, { name: AGENT, agent, mode: "drain", stop: new AbortController().signal }),
    ).toEqual({
      "dead-letter": 1,
    });
    const task = await b.task("large");
    expect(task).toMatchObject({ state: "failed", error: { code: "input_too_large" }, released: false });
    expect(task.input).toEqual({ text: "x".repeat(5_000) });
    expect(task.settled).toMatchObject([{ seq: 1, outcome: "failed" }]);
  });

  test("a message that fits NATS and no document is kept, cut short, and holds up nobody", async () => {
    await using b = await bench(nats, "nats-kv", agent, { inputLimit: 800_000, resultLimit: 100_000 });
    await publishRaw(b, "key", bytes(`{"v":1,"input":{},"orderingKey":"${"k".repeat(1_000_000)}"}`));
    await publishRaw(b, "junk", bytes("j".repeat(1_000_000)));
    await b.submit({}, { id: "behind" });
    expect(await b.drain()).toEqual({ "dead-letter": 2, completed: 1 });
    expect(await b.task("key")).toMatchObject({
      error: { code: "envelope_invalid" },
      raw: { truncated: true },
    });
    expect(await b.task("junk")).toMatchObject({
      error: { code: "envelope_invalid" },
      raw: { truncated: true },
    });
    await expect(b.submit({}, { orderingKey: "k".repeat(513) })).rejects.toMatchObject({
      code: "input_invalid",
    });
  });
});

test("a message on one agent's queue never touches a task of another agent", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "mine" });
  const other = { ...b.queue, agent: "other" };
  await b.deps.bus.ensure(other);
  await b.deps.bus.publish(other, {
    taskId: "mine",
    data: bytes('{"v":1,"input":{}}'),
    msgId: "m",
    headers: {},
  });
  expect(
    await serve(b.deps, { name: "other", agent, mode: "drain", stop: new AbortController().signal }),
  ).toEqual({ surplus: 1 });
  expect(await b.task("mine")).toMatchObject({
    state: "dispatched",
    agent: AGENT,
    settled: [{ outcome: "conflict" }],
  });
  expect(await b.drain()).toEqual({ completed: 1 });
});

describe("submit refuses, and writes nothing", () => {
  test.each([
    ["an empty id", "", "task_id_invalid"],
    ["a slash", "a/b", "task_id_invalid"],
    ["a dot", "a.b", "task_id_invalid"],
    ["a wildcard", "*", "task_id_invalid"],
    ["a space", "a b", "task_id_invalid"],
    ["a line break", "a\n", "task_id_invalid"],
    ["129 characters", "x".repeat(129), "task_id_invalid"],
    ["a reserved id", "__all__", "task_id_invalid"],
  ])("%s", async (_, id, code) => {
    await using b = await bench(nats, "nats-kv", agent);
    await expect(b.submit({}, { id })).rejects.toMatchObject({ code });
    expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
  });

  test("an input over the limit, with the limit in the error", async () => {
    await using b = await bench(nats, "nats-kv", agent, { inputLimit: 1000 });
    await expect(b.submit({ x: "y".repeat(1000) }, { id: "big" })).rejects.toMatchObject({
      code: "input_too_large",
      message: expect.stringContaining("the limit is 1000"),
    });
    expect(await b.deps.store.get("big")).toBeUndefined();
  });

  test.each([
    ["not JSON", "{x", /not JSON/],
    ["not an object", "[]", /an array/],
    ["null", "null", /null/],
    ["deep", deep, /10000 levels deep; 64 is the limit/],
    ["__proto__", '{"__proto__":{"x":1}}', /"__proto__"/],
  ])("text that is %s", (_, text, says) => {
    expect(() => checkInput(text, 1_000_000)).toThrow(says);
  });
});
