import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { Fatal, Retry } from "../../shared/agent.ts";
import { buryGivenUp } from "../../shared/dispatch/advisories.ts";
import { redrive } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { type Queue, streamName } from "../../shared/task/names.ts";
import { isFinal } from "../../shared/task/table.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { next } from "../support/servers/bus.ts";
import { holdHandlers, letHandlersGo, notes, pawl, recordFile } from "../support/servers/runners.ts";
import { hasEmulator, testNats, wired } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const MAX_DELIVER = 10;
const never = new AbortController().signal;
const bytes = (text: string) => new TextEncoder().encode(text);

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

interface Stage extends Bench {
  readonly file: string;
  /** Of handlers in this process. */
  readonly runs: string[];
  mend(): void;
}

async function stage(kind: StoreKind): Promise<Stage> {
  const runs: string[] = [];
  let isMended = false;
  const agent = agentOf(
    ({ id, input }) => {
      runs.push(id);
      if (isMended) return "done";
      if ((input as JsonObject).how === "fatal") throw new Fatal("no use");
      throw new Retry("always", 0);
    },
    { attempts: 2 },
  );
  const b = await bench(nats, kind, agent, { maxDeliver: MAX_DELIVER, ackWait: 2_000, crashLimit: 2 });
  const mend = () => {
    isMended = true;
  };
  return Object.assign(b, { runs, mend, file: await recordFile() });
}

const drainedUntil = (b: Bench, id: string) =>
  until(`${id} is over`, async () => {
    await b.drain();
    return isFinal(await b.task(id));
  });

/** Takes every message and gives it back, as runners do that can decide nothing, until the server gives them up. */
async function giveUp(b: Bench, queue = b.queue, messages = 1): Promise<void> {
  for (let deliveries = 0; deliveries < messages * MAX_DELIVER; deliveries++)
    await (await next(b.deps, queue)).nak(0);
  // Only this pull, which finds nothing, makes the server say so.
  expect(await b.deps.bus.pull(queue, 1_000).delivery).toBeUndefined();
}

interface Cause {
  readonly name: string;
  readonly code: string;
  readonly agent: string;
  readonly input: JsonObject;
  readonly executions: number;
  /** The settled sequences of a task that ends so. */
  readonly settled: readonly string[];
  /** Whether its last holder let go. */
  readonly released: boolean;
  die(s: Stage, queue: Queue): Promise<void>;
  live(s: Stage): Promise<void>;
}

const here = { agent: AGENT, live: (s: Stage) => drainedUntil(s, "t").then(() => {}) };
const causes: readonly Cause[] = [
  {
    ...here,
    name: "a fatal error",
    code: "fatal",
    input: { how: "fatal" },
    executions: 1,
    settled: ["failed"],
    released: true,
    die: async (s) => {
      await s.drain();
    },
  },
  {
    ...here,
    name: "its attempts, all spent",
    code: "attempts_exhausted",
    input: { how: "always" },
    executions: 2,
    settled: ["rescheduled", "failed"],
    released: true,
    die: async (s) => {
      await drainedUntil(s, "t");
    },
  },
  {
    name: "a crash loop",
    code: "crash_loop",
    agent: "recorder",
    input: {},
    executions: 2,
    settled: ["failed"],
    released: false,
    die: async (s) => {
      const env = { TEST_RECORD: s.file };
      holdHandlers(s.file);
      for (let kills = 1; kills <= 2; kills++) {
        const runner = pawl(s.world, ["run", "recorder", "--json"], env);
        await until("it began", async () => notes(s.file).length === kills);
        await runner.kill("SIGKILL");
      }
      letHandlersGo(s.file);
      const last = pawl(s.world, ["run", "recorder", "--drain", "--json"], env);
      expect(await last.exited, last.text()).toBe(0);
      expect(notes(s.file).map(({ what }) => what)).toEqual(["start", "start"]);
    },
    live: async (s) => {
      const runner = pawl(s.world, ["run", "recorder", "--drain", "--json"], { TEST_RECORD: s.file });
      expect(await runner.exited, runner.text()).toBe(0);
      expect(notes(s.file).map(({ what }) => what)).toEqual(["start", "start", "start", "end"]);
    },
  },
  {
    ...here,
    name: "a server that gave its message up, with nobody listening",
    code: "deliveries_exhausted",
    input: { how: "never decided" },
    executions: 0,
    settled: ["failed"],
    released: false,
    die: async (s, queue) => {
      await giveUp(s, queue);
      expect(await buryGivenUp(s.deps, never)).toBe(1);
      expect(await s.deps.bus.advisories(10)).toEqual([]);
    },
  },
];

describe.each([
  { kind: "nats-kv", isHere: true },
  { kind: "firestore-rest", isHere: hasEmulator },
] as const)("$kind", ({ kind, isHere }) => {
  describe.skipIf(!isHere)("a dead letter", () => {
    test.each(causes)("by $name says why, keeps its input, and is redriven to the end", async (cause) => {
      await using s = await stage(kind);
      const queue = { ...s.queue, agent: cause.agent };
      await s.deps.bus.ensure(queue);
      await submit(s.deps, { agent: cause.agent, lanes: 1, id: "t", input: cause.input });
      await cause.die(s, queue);
      const dead = await s.task("t");
      expect(dead).toMatchObject({
        state: "failed",
        error: { code: cause.code, message: expect.stringMatching(/\w/) },
        input: cause.input,
        executions: cause.executions,
        released: cause.released,
        expiresAt: expect.any(Number),
      });
      expect(dead.settled.map(({ outcome }) => outcome)).toEqual(cause.settled);
      expect(dead.settled.map(({ seq }) => seq)).toEqual(cause.settled.map((_, i) => i + 1));
      expect(dead.settled.every((one) => one.queue === streamName(queue))).toBe(true);
      const { messages, lastSeq } = await s.deps.bus.inspect(queue);
      expect({ messages, lastSeq }).toEqual({ messages: 0, lastSeq: cause.settled.length });

      // Inside the duplicate window: the first message's id would still be swallowed, the redrive's is not.
      s.mend();
      const again = { taskId: "t", data: bytes("{}"), msgId: "submit:t", headers: {} };
      expect(await s.deps.bus.publish(queue, again)).toMatchObject({ kind: "duplicate" });
      expect(Date.now() - dead.createdAt).toBeLessThan(s.deps.settings.duplicateWindow);
      expect(await redrive(s.deps, "t")).toMatchObject({ state: "dispatched", attempts: 0 });
      const sent = await s.deps.bus.lookup(queue, "t");
      expect(sent?.headers.get("Nats-Msg-Id")).toBe(`redrive:t:${cause.settled.length + 1}`);
      await cause.live(s);
      const done = await s.task("t");
      expect(done).toMatchObject({
        state: "completed",
        input: cause.input,
        executions: cause.executions + 1,
        released: true,
      });
      expect(done.settled.map(({ outcome }) => outcome)).toEqual([...cause.settled, "completed"]);
      expect(await s.deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
    });
  });

  describe.skipIf(!isHere)("a message that the server gave up on", () => {
    test("that is no task keeps its bytes, all of them, and can't be redriven", async () => {
      await using s = await stage(kind);
      const junk = new Uint8Array([0x7b, 0xff, 0x00, 0xfe, 0x7d]);
      await s.deps.bus.publish(s.queue, { taskId: "junk", data: junk, msgId: "m", headers: {} });
      await giveUp(s);
      expect(await buryGivenUp(s.deps, never)).toBe(1);
      const letter = await s.task("junk");
      expect(letter).toMatchObject({
        state: "failed",
        error: { code: "deliveries_exhausted", message: expect.stringContaining("not UTF-8") },
        raw: { bytes: 5, truncated: false, base64: Buffer.from(junk).toString("base64") },
        settled: [{ seq: 1, outcome: "failed" }],
      });
      await expect(redrive(s.deps, "junk")).rejects.toMatchObject({ code: "redrive_refused" });
      expect(await s.deps.bus.inspect(s.queue)).toMatchObject({ messages: 0 });
    });

    test.each([
      ["whose document is gone", { "Pawl-Dispatch": "1" }],
      ["that was published directly", {}],
    ])("%s becomes a dead letter with its input, and is redriven", async (_, headers) => {
      await using s = await stage(kind);
      const data = bytes('{"v":1,"input":{"kept":true}}');
      await s.deps.bus.publish(s.queue, { taskId: "t", data, msgId: "m", headers });
      await giveUp(s);
      expect(await buryGivenUp(s.deps, never)).toBe(1);
      expect(await s.task("t")).toMatchObject({
        state: "failed",
        error: { code: "deliveries_exhausted", phase: "delivery" },
        input: { kept: true },
        executions: 0,
        settled: [{ seq: 1, outcome: "failed" }],
      });
      s.mend();
      await redrive(s.deps, "t");
      await drainedUntil(s, "t");
      expect(await s.task("t")).toMatchObject({ state: "completed", result: "done", executions: 1 });
      expect(s.runs).toEqual(["t"]);
    });

    test("is buried once by two that come at once, and the ones beside it are left alone", async () => {
      await using s = await stage(kind);
      await using other = await wired(s.world.config);
      const ids = ["a", "b", "c"];
      for (const id of ids) await s.submit({ id }, { id });
      await giveUp(s, s.queue, 3);
      const { seq } = (await s.deps.bus.lookup(s.queue, "b")) ?? { seq: 0 };
      await s.submit({}, { id: "beside" });
      expect(await s.deps.bus.advisories(10)).toHaveLength(3);
      const buried = await Promise.all([buryGivenUp(s.deps, never), buryGivenUp(other, never)]);
      expect(buried[0] + buried[1]).toBeGreaterThanOrEqual(3);
      expect([...s.deps.logged, ...other.logged].map(({ event }) => event)).not.toContain("advisory.failed");
      for (const id of ids) {
        const task = await s.task(id);
        expect(task).toMatchObject({
          state: "failed",
          error: { code: "deliveries_exhausted" },
          input: { id },
        });
        expect(task.settled).toHaveLength(1);
        expect(task.history.map(({ event }) => event)).toEqual(["submit", "exhaust"]);
      }
      expect((await s.task("b")).settled).toMatchObject([{ seq, outcome: "failed" }]);
      expect(await s.deps.bus.advisories(10)).toEqual([]);
      expect(await s.task("beside")).toMatchObject({ state: "dispatched", settled: [] });
      expect(await s.deps.bus.state(s.queue)).toEqual({ pending: 1, inFlight: 0 });
      expect(await buryGivenUp(s.deps, never)).toBe(0);
      s.mend();
      expect(await s.drain()).toEqual({ completed: 1 });
      expect(await s.deps.bus.inspect(s.queue)).toMatchObject({ messages: 0 });
      expect(s.runs).toEqual(["beside"]);
    });
  });
});
