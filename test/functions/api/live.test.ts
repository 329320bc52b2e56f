import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startModel, text } from "../../../infra/local/model.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { anthropic } from "../../../shared/adapters/anthropic.ts";
import type { AgentContext } from "../../../shared/agent.ts";
import { redrive } from "../../../shared/dispatch/operate.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { isFinal } from "../../../shared/task/table.ts";
import { agentOf } from "../../support/bench.ts";
import { ALL } from "../../support/http/api.ts";
import { MODEL } from "../../support/http/asking.ts";
import { follow, wordOf } from "../../support/http/sse.ts";
import { webStage } from "../../support/http/web.ts";
import { stores, testNats } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Before the next word to a reader that is silent, which it is told every fifteen seconds. */
const SOON = 12_000;

/** Ann's task on the API, and ways to follow it. */
async function stage(kind: (typeof stores)[number]["kind"] = "nats-kv") {
  const s = await webStage(nats, kind);
  const ann = await s.token("ann");
  const id = "t";
  await s.submit({}, { id, meta: { owner: "ann" } });
  const open = (after?: string, token = ann, method = "GET") =>
    s.request(`/v1/tasks/${id}/events`, { token, method, headers: after ? { "last-event-id": after } : {} });
  /** How many listen to what the bus says of tasks. */
  const listening = new Set<object>();
  const { bus } = s.deps;
  const listen: typeof bus.listen = (...args) => {
    const one = {};
    const stop = bus.listen(...args);
    listening.add(one);
    return () => {
      listening.delete(one);
      stop();
    };
  };
  Object.assign(s.deps, { bus: { ...bus, listen } });
  /** Until it is over, however often it is tried. */
  const finish = (run: (context: AgentContext<unknown>) => unknown, limits = {}) =>
    until("it is over", async () => {
      await s.drain(agentOf(run, limits));
      return isFinal(await s.task(id));
    });
  return Object.assign(s, { ann, id, open, listening, finish });
}

const walk = async ({ step }: AgentContext<unknown>) => {
  for (const name of ["a", "b", "c"]) await step(name, () => name);
};

describe.each(stores.filter(({ kind }) => kind !== "firestore"))("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "what happens to a task arrives as it happens, in order, each once, until it is over",
    async () => {
      await using s = await stage(kind);
      await using model = await startModel(() => text("from the model"));
      Object.assign(s.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const events = await follow(s.open());
      expect(events.response.headers.get("content-type")).toBe("text/event-stream");
      await events.until("submit");
      const running = s.drain(
        agentOf(async ({ step, llm }) => {
          await step("one", () => ({ n: 1 }));
          await first.promise;
          const answer = await llm("ask", { model: MODEL, prompt: "?", maxTokens: 100 });
          await second.promise;
          return step("two", () => answer.text);
        }),
      );
      // Nothing that follows can have happened before the test lets it.
      expect((await events.until("step one#1")).data).toMatchObject({ n: 1, value: { n: 1 } });
      expect((await s.task(s.id)).state).toBe("running");
      first.resolve();
      expect(JSON.stringify((await events.until("receipt ask/turn 1#1")).data)).toContain("from the model");
      expect((await s.task(s.id)).state).toBe("running");
      second.resolve();
      await events.rest();
      expect(events.words()).toEqual([
        "submit",
        "claim",
        "step one#1",
        "intent ask/turn 1#1",
        "receipt ask/turn 1#1",
        "step two#1",
        "complete",
        "end completed",
      ]);
      expect(events.seen.filter(({ event }) => event === "journal").map(({ data }) => data.n)).toEqual([
        1, 2, 3, 4,
      ]);
      expect((await running).completed).toBe(1);
      expect(s.listening.size).toBe(0);
    },
  );

  test.skipIf(!here)(
    "a reader that comes late, or goes on anywhere, gets what is left and nothing twice",
    async () => {
      await using s = await stage(kind);
      await s.finish(walk);
      const whole = await follow(s.open());
      await whole.rest();
      const words = ["submit", "claim", "step a#1", "step b#1", "step c#1", "complete", "end completed"];
      expect(whole.words()).toEqual(words);
      for (const [i, { id }] of whole.seen.entries()) {
        const rest = await follow(s.open(id));
        await rest.rest();
        // The end is not a thing that happened: who asks is told again.
        expect(rest.seen, words[i]).toEqual(whole.seen.slice(Math.min(i + 1, words.length - 1)));
      }
      for (const odd of ["", "x", "no-such-stamp.2.0", `${whole.seen[0]?.id}9`, "..", "é", "a".repeat(500)]) {
        const again = await follow(s.open(odd));
        await again.rest();
        expect(again.words(), odd).toEqual(expect.arrayContaining(["complete", "end completed"]));
      }
    },
  );

  test.skipIf(!here)(
    "one that hangs up again and again while it runs loses nothing, and repeats nothing",
    async () => {
      await using s = await stage(kind);
      let runs = 0;
      const flaky = async ({ step }: AgentContext<unknown>) => {
        for (let i = 0; i < 8; i++) await step(`s${i}`, () => i);
        if (++runs < 3) throw new Error("not yet");
      };
      const over = s.finish(flaky, { attempts: 3, backoff: { first: "10ms" } });
      const seen = [];
      for (let last: string | undefined, takes = 1; seen.at(-1)?.event !== "end"; takes = (takes % 3) + 1) {
        const events = await follow(s.open(last));
        seen.push(...(await events.take(takes)));
        await events.hangUp();
        last = seen.at(-1)?.id;
        expect(seen.length).toBeLessThan(100);
      }
      await over;
      const { history } = await s.task(s.id);
      const transitions = seen.filter(({ event }) => event === "transition");
      expect(transitions.map(({ data }) => data.stamp)).toEqual(history.map(({ stamp }) => stamp));
      const entries = seen.filter(({ event }) => event === "journal");
      expect(entries.map(wordOf)).toEqual(Array.from({ length: 8 }, (_, i) => `step s${i}#1`));
      expect(runs).toBe(3);
      await until("nobody listens", async () => s.listening.size === 0);
    },
  );
});

test("a long journal is told whole, from wherever it is gone on with", async () => {
  await using s = await stage();
  await s.finish(async ({ step }) => {
    for (let i = 1; i <= 130; i++) await step("count", () => i);
  });
  const whole = await follow(s.open());
  await whole.rest();
  const entries = whole.seen.filter(({ event }) => event === "journal");
  expect(entries.map(({ data }) => data.value)).toEqual(Array.from({ length: 130 }, (_, i) => i + 1));
  for (const from of [0, 49, 50, 99, 128]) {
    const rest = await follow(s.open(entries[from]?.id));
    await rest.rest();
    expect(rest.words().at(0)).toBe(`step count#${from + 2}`);
    expect(rest.seen).toHaveLength(130 - from - 1 + "complete, end".split(", ").length);
  }
});

test("redriven from scratch, its new journal is told from its beginning, to whoever saw the old one", async () => {
  await using s = await stage();
  let isBroken = true;
  const run = async ({ step }: AgentContext<unknown>) => {
    for (const name of ["a", "b"]) await step(name, () => name);
    if (isBroken) throw new Error("no");
    await step("c", () => "c");
  };
  await s.finish(run, { attempts: 1 });
  const before = await follow(s.open());
  await before.rest();
  expect(before.words().at(-1)).toBe("end failed");
  isBroken = false;
  await redrive(s.deps, s.id, { fromScratch: true });
  await s.finish(run);
  const after = await follow(s.open(before.seen.at(-1)?.id));
  await after.rest();
  expect(after.words()).toEqual([
    "redrive",
    "claim",
    "step a#1",
    "step b#1",
    "step c#1",
    "complete",
    "end completed",
  ]);
});

test("a value that is long is shown in part", async () => {
  await using s = await stage();
  await s.finish(({ step }) => step("long", () => "x".repeat(6_000)));
  const events = await follow(s.open());
  const { data } = await events.until("step long#1");
  expect(data).not.toHaveProperty("value");
  expect(data.cut).toHaveLength(4_000);
  await events.hangUp();
});

test("another owner's task has no events, and one's own only for who may read", async () => {
  await using s = await stage();
  for (const [token, status] of [
    [await s.token("bob"), 404],
    [await s.token("ann", ALL, ["other"]), 404],
    [await s.token("ann", ["submit"]), 403],
    ["", 401],
  ] as const) {
    const response = await s.open(undefined, token);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      status,
      "application/problem+json",
    ]);
  }
  expect(s.listening.size).toBe(0);
  const boss = await follow(s.open(undefined, await s.token("boss", ALL)));
  await boss.until("submit");
  await boss.hangUp();
});

test("whoever hangs up is not listened for any more, whatever they had read", async () => {
  await using s = await stage();
  const reading = await follow(s.open());
  await reading.until("submit");
  expect(s.listening.size).toBe(1);
  await reading.hangUp();
  await until("the reader is forgotten", async () => s.listening.size === 0, SOON);
  const unread = await s.open();
  await until("it is listened for", async () => s.listening.size === 1);
  await unread.body?.cancel();
  await until("who read nothing is forgotten", async () => s.listening.size === 0, SOON);
  const crowd = await Promise.all(Array.from({ length: 20 }, () => follow(s.open())));
  await Promise.all(crowd.map((one) => one.until("submit")));
  expect(s.listening.size).toBe(20);
  expect((await s.open()).status).toBe(429);
  await Promise.all(crowd.map((one) => one.hangUp()));
  await until("all are forgotten", async () => s.listening.size === 0, SOON);
  const head = await s.open(undefined, s.ann, "HEAD");
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect(s.listening.size).toBe(0);
});

test("after five minutes a stream ends, for a reader that has stopped reading too", async () => {
  await using s = await stage();
  await s.finish(
    async ({ step }) => {
      for (let i = 0; i < 40; i++) await step("count", () => "x".repeat(3_000));
      throw new Error("no");
    },
    { attempts: 1 },
  );
  await redrive(s.deps, s.id);
  const timeout = vi.spyOn(AbortSignal, "timeout");
  const late = new AbortController();
  timeout.mockReturnValue(late.signal);
  const [reads, stuck] = [await follow(s.open()), await s.open()];
  await reads.until("redrive");
  expect([timeout.mock.calls, s.listening.size]).toEqual([[[300_000], [300_000]], 2]);
  timeout.mockRestore();
  late.abort();
  await reads.rest();
  expect(reads.words().at(-1)).toBe("redrive");
  await until("nobody is listened for", async () => s.listening.size === 0, SOON);
  await stuck.body?.cancel();
});

test("a store that fails ends the stream without an end, and it is gone on with where it was", async () => {
  await using s = await stage();
  const { store } = s.deps;
  let isAway = false;
  const get: typeof store.get = (id) =>
    isAway ? Promise.reject(new PawlError("store_unavailable", "away")) : store.get(id);
  Object.assign(s.deps, { store: { ...store, get } });
  const events = await follow(s.open());
  const { id } = await events.until("submit");
  isAway = true;
  s.deps.bus.announce({ id: s.id, agent: "tested" });
  await events.rest();
  expect(events.words()).toEqual(["submit"]);
  expect(s.deps.logged.map(({ event }) => event)).toContain("events.ended");
  isAway = false;
  await s.finish(walk);
  const rest = await follow(s.open(id));
  await rest.rest();
  expect(rest.words()).toEqual(["claim", "step a#1", "step b#1", "step c#1", "complete", "end completed"]);
});
