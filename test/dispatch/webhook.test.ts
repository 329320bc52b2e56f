import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { webhook } from "../../shared/adapters/webhook.ts";
import { type AgentContext, Fatal } from "../../shared/agent.ts";
import { redrive, signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Untold } from "../../shared/task/document.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { oneOfEach, testNats, wired } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

const SECRET = "a secret of the tests";
const HOURS = 3_600_000;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

interface Call {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: { type: string; timestamp: string; data: Record<string, unknown> };
}

/** Somebody's server, that remembers what it was told. It answers 204 unless it is given something else to do. */
async function receiver() {
  const calls: Call[] = [];
  const s = { calls, url: "", answer: (response: ServerResponse) => void response.writeHead(204).end() };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { headers } = request;
    calls.push({ id: String(headers["webhook-id"]), headers, text, body: JSON.parse(text) as Call["body"] });
    s.answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  s.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return Object.assign(s, { [Symbol.asyncDispose]: close });
}

/** Ends as its input says. */
function ends({ input, effect, approval }: AgentContext<unknown>): unknown {
  const { as } = input as { as: string };
  if (as === "failed") throw new Fatal("it can't be done");
  if (as === "in_doubt") return effect("post", { run: () => Promise.reject(new Error("cut off")) });
  if (as === "waiting") return approval("go", { summary: "Shall I?" });
  if (as === "late") return approval("go", { timeout: "1h" });
  return "done";
}

/** Tasks that ended in these ways, on a stage where time can be moved, and somebody who listens. */
async function stage(kind: StoreKind, ways: readonly string[], secret: string | null = SECRET) {
  const there = await receiver();
  // Strict: what is tried again comes again by itself, without a sweep.
  const limits = { attempts: 2, order: "strict", backoff: { first: "50ms" } } as const;
  const b = await bench(nats, kind, agentOf(ends, limits));
  const later = travel(b.deps);
  if (secret !== null) Object.assign(b.deps, { notify: webhook({ url: there.url, secret }) });
  for (const as of ways) await b.submit({ as }, { id: as, meta: { owner: "ann", labels: { team: "a" } } });
  await b.drain();
  return Object.assign(b, {
    there,
    later,
    sweep: () => dispatchDue(b.deps, AGENT),
    untold: async (id: string) => ((await b.task(id)) as { untold?: Untold }).untold,
    [Symbol.asyncDispose]: async () => {
      await b.deps[Symbol.asyncDispose]();
      await there[Symbol.asyncDispose]();
    },
  });
}

/** As the receiver's library does it: https://www.standardwebhooks.com */
function isSigned({ id, headers, text }: Call, key: string | Buffer): boolean {
  const signed = `${id}.${headers["webhook-timestamp"]}.${text}`;
  const signature = createHmac("sha256", key).update(signed).digest("base64");
  return headers["webhook-signature"] === `v1,${signature}`;
}

const refuse = (status: number) => (response: ServerResponse) => void response.writeHead(status).end("no");

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "what failed, is in doubt or waits is told once each, signed, and nothing else is",
    async () => {
      await using s = await stage(kind, ["failed", "in_doubt", "waiting", "completed"]);
      const begun = Date.now();
      expect(s.there.calls).toEqual([]);
      expect(await s.sweep()).toBe(3);
      const byType = new Map(s.there.calls.map((call) => [call.body.type, call]));
      expect([...byType.keys()].toSorted()).toEqual(["task.failed", "task.in_doubt", "task.waiting"]);
      expect(s.there.calls).toHaveLength(3);
      const common = { agent: AGENT, usd: 0, labels: { team: "a" } };
      expect(byType.get("task.failed")?.body.data).toEqual({
        ...common,
        id: "failed",
        state: "failed",
        attempts: 1,
        error: { code: "fatal", message: "it can't be done" },
      });
      expect(byType.get("task.in_doubt")?.body.data).toMatchObject({
        ...common,
        id: "in_doubt",
        effect: "post#1",
      });
      expect(byType.get("task.waiting")?.body.data).toMatchObject({
        ...common,
        id: "waiting",
        waitingFor: ["approval:go"],
        summary: "Shall I?",
      });
      for (const call of s.there.calls) {
        expect(isSigned(call, SECRET)).toBe(true);
        expect(isSigned({ ...call, text: `${call.text} ` }, SECRET)).toBe(false);
        expect(call.headers["content-type"]).toBe("application/json");
        // Receivers refuse what is old: this is the moment of the call, not of what happened.
        expect(Number(call.headers["webhook-timestamp"])).toBeGreaterThanOrEqual(Math.floor(begun / 1_000));
        const { updatedAt, history } = await s.task(call.body.data.id as string);
        const happened = history.findLast(({ event }) => event !== "told")?.at ?? updatedAt;
        expect(call.body.timestamp).toBe(new Date(happened).toISOString());
        expect(call.text).not.toContain('"as"');
        expect(await s.untold(call.body.data.id as string)).toBeUndefined();
      }
      s.later(48 * HOURS);
      await s.sweep();
      expect(s.there.calls).toHaveLength(3);
    },
  );

  test.skipIf(!here)(
    "one that is refused is told again later under the same id, and then no more",
    async () => {
      await using s = await stage(kind, ["failed"]);
      s.there.answer = refuse(500);
      expect(await s.sweep()).toBe(0);
      expect(await s.untold("failed")).toMatchObject({ tries: 1 });
      // Not at once: it has its own time.
      await s.sweep();
      expect(s.there.calls).toHaveLength(1);
      s.later(60_001);
      await s.sweep();
      expect(await s.untold("failed")).toMatchObject({ tries: 2 });
      s.there.answer = refuse(200);
      s.later(120_001);
      expect(await s.sweep()).toBe(1);
      s.later(48 * HOURS);
      expect(await s.sweep()).toBe(0);
      expect(s.there.calls).toHaveLength(3);
      expect(new Set(s.there.calls.map(({ id }) => id)).size).toBe(1);
      expect(new Set(s.there.calls.map(({ text }) => text)).size).toBe(1);
      expect(s.there.calls.every((call) => isSigned(call, SECRET))).toBe(true);
      expect(await s.task("failed")).toMatchObject({ state: "failed", attempts: 1 });
      expect(await s.untold("failed")).toBeUndefined();
    },
  );

  test.skipIf(!here)("sweeps at the same time tell each of them once", async () => {
    await using s = await stage(kind, []);
    const ids = Array.from({ length: 12 }, (_, i) => `t${i}`);
    for (const id of ids) await s.submit({ as: "failed" }, { id });
    await s.drain();
    await using other = await wired(s.world.config);
    Object.assign(other, { notify: webhook({ url: s.there.url, secret: SECRET }) });
    const told = await Promise.all([
      s.sweep(),
      s.sweep(),
      dispatchDue(other, AGENT),
      dispatchDue(other, AGENT),
    ]);
    expect(told.reduce((sum, one) => sum + one)).toBe(12);
    expect(s.there.calls.map(({ body }) => body.data.id).toSorted()).toEqual(ids.toSorted());
    expect(new Set(s.there.calls.map(({ id }) => id)).size).toBe(12);
  });

  test.skipIf(!here)(
    "where nobody is to be told, nothing is written down for it and nothing looked for",
    async () => {
      await using s = await stage(kind, ["failed", "in_doubt", "waiting"], null);
      for (const id of ["failed", "in_doubt", "waiting"]) expect(await s.untold(id), id).toBeUndefined();
      const looked: string[] = [];
      const { store } = s.deps;
      const due: typeof store.due = (agent, state, ...rest) => {
        looked.push(state);
        return store.due(agent, state, ...rest);
      };
      Object.assign(s.deps, { store: { ...store, due } });
      expect(await s.sweep()).toBe(0);
      expect(looked).toEqual(["scheduled", "waiting", "dispatched", "running"]);
      // Nor are they told to somebody who comes later.
      Object.assign(s.deps, { notify: webhook({ url: s.there.url, secret: SECRET }) });
      s.later(48 * HOURS);
      await s.sweep();
      expect(looked).toContain("failed");
      expect(s.there.calls).toEqual([]);
    },
  );
});

test("a secret of the receiver's library is the bytes that it stands for", async () => {
  const key = Buffer.from("0123456789abcdef01234567");
  await using s = await stage("nats-kv", ["failed"], `whsec_${key.toString("base64")}`);
  await s.sweep();
  expect(s.there.calls.map((call) => isSigned(call, key))).toEqual([true]);
});

test("a redirect is not followed: it counts as not taken", async () => {
  await using elsewhere = await receiver();
  await using s = await stage("nats-kv", ["failed"]);
  for (const status of [301, 302, 307, 308]) {
    s.there.answer = (response) => void response.writeHead(status, { location: elsewhere.url }).end();
    expect(await s.sweep()).toBe(0);
    s.later(2 * HOURS);
  }
  expect([s.there.calls.length, elsewhere.calls.length]).toEqual([4, 0]);
  expect(await s.untold("failed")).toMatchObject({ tries: 4 });
});

test("a receiver that never answers, or is not there, is given five seconds and does not stop the sweep", async () => {
  await using s = await stage("nats-kv", ["failed"]);
  await s.submit({ as: "completed" }, { id: "due", at: Date.now() + HOURS });
  s.later(HOURS + 1);
  s.there.answer = () => {};
  const begun = performance.now();
  expect(await s.sweep()).toBe(1);
  expect(performance.now() - begun).toBeLessThan(30_000);
  expect((await s.task("due")).state).toBe("dispatched");
  await s.there[Symbol.asyncDispose]();
  s.later(2 * HOURS);
  expect(await s.sweep()).toBe(0);
  expect(await s.untold("failed")).toMatchObject({ tries: 2 });
  const failures = s.deps.logged.filter(({ event }) => event === "webhook.failed");
  expect(failures.map(({ fields }) => fields.tries)).toEqual([1, 2]);
  expect(JSON.stringify(failures)).not.toContain(SECRET);
});

test("after thirty tries it is given up, and said so once", async () => {
  await using s = await stage("nats-kv", ["failed"]);
  s.there.answer = refuse(503);
  for (let i = 0; i < 40; i++) {
    await s.sweep();
    s.later(2 * HOURS);
  }
  expect(s.there.calls).toHaveLength(30);
  expect(s.deps.logged.filter(({ event }) => event === "webhook.given-up")).toHaveLength(1);
  expect(await s.untold("failed")).toBeUndefined();
});

test("what is news no more is not told, and what fails anew is news again", async () => {
  await using s = await stage("nats-kv", ["waiting", "failed", "late"]);
  await signal(s.deps, "waiting", approvalSignal("go"), { approved: true, by: "ann" });
  expect(await s.untold("waiting")).toBeUndefined();
  await s.sweep();
  expect(s.there.calls.map(({ body }) => body.type).toSorted()).toEqual(["task.failed", "task.waiting"]);
  expect(s.there.calls.map(({ body }) => body.data.id)).not.toContain("waiting");
  await redrive(s.deps, "failed");
  await s.drain();
  await s.sweep();
  const failed = s.there.calls.filter(({ body }) => body.data.id === "failed");
  expect([failed.length, new Set(failed.map(({ id }) => id)).size]).toEqual([2, 2]);
  // A wait whose time is over goes on, and fails by its own word.
  s.later(HOURS + 1);
  await s.sweep();
  await s.drain();
  await s.sweep();
  expect(s.there.calls.at(-1)?.body).toMatchObject({ type: "task.failed", data: { id: "late" } });
  expect(s.there.calls).toHaveLength(4);
});
