import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Built } from "../../infra/build/build.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Settings } from "../../shared/settings/settings.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { observer } from "../support/observer.ts";
import { bundle, deploy, post, SECRET, varsOf, witness } from "../support/servers/platforms.ts";
import { hasEmulator, testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** As deployed: on Workers this store is reached by REST, on Cloud Run by gRPC. */
const STORE = hasEmulator ? "firestore" : "nats-kv";

/** What the first invocation did that took a task: on a busy machine one may be out of time before it has. */
async function worked(url: string): Promise<{ handled: object }> {
  for (let tries = 1; ; tries++) {
    const answer = (await (await post(url)).json()) as { handled: object };
    if (Object.keys(answer.handled).length > 0 || tries === 20) return answer;
  }
}

describe.each(TARGETS)("%s", (target) => {
  let built: Built;
  let outside: Awaited<ReturnType<typeof witness>>;
  beforeAll(async () => {
    outside = await witness();
    built = await bundle("walker", target);
  });
  afterAll(() => outside[Symbol.asyncDispose]());

  /** A server, a store and the deployed function. */
  async function stage(nats: LocalNats, given: Partial<Settings> = {}, more: Record<string, string> = {}) {
    const w = world(nats, STORE, given);
    const deps = await observer(w);
    await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
    // Each stage has a page of its own in the witness's book.
    const page = randomUUID();
    const start = () => deploy(built, varsOf(w, target, more));
    const stack = new AsyncDisposableStack();
    stack.use(deps);
    const deployed = stack.use(await start());
    return {
      world: w,
      deps,
      deployed,
      start,
      walk: (id: string, input: JsonObject = {}) =>
        submit(deps, { agent: "walker", lanes: 1, id, input: { url: `${outside.url}/${page}`, ...input } }),
      task: async (id: string) => (await deps.store.get(id))?.task,
      /** How often each step was run, by the account of the server that it called. */
      steps: (id: string) =>
        outside.seen
          .filter((one) => one.startsWith(`${page}/${id}/`))
          .map((one) => one.slice(page.length + 1)),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  }
  const steps = (id: string, count: number) => Array.from({ length: count }, (_, i) => `${id}/${i}`);

  test("POST /run takes a task, completes it, acks it, and answers with what it did", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    await s.walk("one", { steps: 2 });
    await s.walk("two");
    const answer = await post(s.deployed.url);
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { agent: "walker", ended: "idle", dispatched: 0, handled: { completed: 2 } },
    ]);
    expect(await s.task("one")).toMatchObject({ state: "completed", result: { sum: 1 }, executions: 1 });
    expect(await s.deps.bus.state(queueOf(s.deps, { agent: "walker", lane: 0 }))).toEqual({
      pending: 0,
      inFlight: 0,
    });
    const idle = await post(s.deployed.url);
    expect(await idle.json()).toMatchObject({ ended: "idle", handled: {} });
  });

  test("cron does the same", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    await s.walk("t");
    await s.deployed.cron();
    expect(await s.task("t")).toMatchObject({ state: "completed" });
  });

  test("nobody without the secret gets in, and nothing else is there", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    await s.walk("t");
    const { url } = s.deployed;
    for (const authorization of ["", "Bearer", "Bearer wrong", "Basic x", `Bearer ${"x".repeat(5_000)}`]) {
      const refused = await post(url, { authorization });
      expect([refused.status, await refused.json()]).toMatchObject([401, { code: "unauthorised" }]);
      expect(refused.headers.get("content-type")).toBe("application/problem+json");
    }
    expect((await fetch(`${url}/run`)).status).toBe(405);
    expect((await fetch(`${url}/other`, { method: "POST" })).status).toBe(404);
    expect(await s.task("t")).toMatchObject({ state: "dispatched" });
  });

  test("a task of ten steps, handed off by one invocation to the next, runs each step once", async () => {
    await using nats = await testNats();
    const given = { ackWait: 6_000, stopGrace: 1_500, requestTimeout: 2_000 };
    await using s = await stage(nats, given, { PAWL_TIME_LIMIT: "5s" });
    await s.walk("t", { steps: 10, ms: 300 });
    const answers: { handled: object }[] = [];
    for (let i = 0; i < 20 && (await s.task("t"))?.state !== "completed"; i++)
      answers.push(await worked(s.deployed.url));
    expect(answers.length).toBeGreaterThanOrEqual(3);
    for (const answer of answers.slice(0, -1))
      expect(answer).toMatchObject({ ended: "out of time", handled: { "handed-off": 1 } });
    expect(s.steps("t")).toEqual(steps("t", 10));
    expect(await s.task("t")).toMatchObject({
      state: "completed",
      result: { sum: 45 },
      attempts: 0,
      executions: answers.length,
      journaled: 10,
    });
  });

  test("a handler that ignores its signal is left behind, and the task is not taken for released", async () => {
    await using nats = await testNats();
    const given = { ackWait: 3_000, stopGrace: 900, requestTimeout: 1_000 };
    await using s = await stage(nats, given, { PAWL_TIME_LIMIT: "6s" });
    await s.walk("t", { steps: 2, ms: 100, deaf: true });
    // On a busy machine an invocation may be told to stop before its handler is deaf: that one lets go.
    const left = await until("an invocation leaves its handler behind", async () => {
      const answer = await worked(s.deployed.url);
      return (await s.task("t"))?.released === false && answer;
    });
    expect(left).toMatchObject({ ended: "out of time", handled: { "handed-off": 1 } });
    expect(await s.task("t")).toMatchObject({ state: "dispatched", released: false, attempts: 0 });
    expect([...new Set(s.steps("t"))]).toEqual(steps("t", 1));
  });

  test("two invocations at once are harmless", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    await s.walk("t", { steps: 3, ms: 500 });
    const answers = await Promise.all([post(s.deployed.url), post(s.deployed.url), post(s.deployed.url)]);
    const bodies = await Promise.all(answers.map((one) => one.text()));
    expect(bodies.filter((body) => body.includes('"handled":{"completed":1}'))).toHaveLength(1);
    expect(s.steps("t")).toEqual(steps("t", 3));
    expect(await s.task("t")).toMatchObject({ executions: 1, fence: 1 });
  });

  test("NATS away: a clear error, and nothing is lost", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    await s.walk("t");
    await nats.halt();
    const answer = await post(s.deployed.url);
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { code: "bus_unavailable", detail: expect.stringMatching(/NATS|JetStream|consumer|stream/) },
    ]);
    await nats.restart();
    await until("t is completed", async () => {
      await post(s.deployed.url);
      return (await s.task("t"))?.state === "completed";
    });
    expect(s.steps("t")).toEqual(steps("t", 1));
  });

  test("wrong credentials: a clear error without them", async () => {
    await using locked = await testNats({
      config: 'authorization { user: "u", password: "right-password" }',
    });
    const w = world(locked, "nats-kv");
    const vars = varsOf(w, target, { NATS_USER: "u", NATS_PASSWORD: "wrong-password" });
    await using deployed = await deploy(built, vars);
    // A server that hangs up right after its error may take the error along: then it looks like no server.
    const body = await until("it is told that the identity was refused", async () => {
      const answer = await post(deployed.url);
      const text = await answer.text();
      expect(answer.status, text).toBe(503);
      return (JSON.parse(text) as { code: string }).code === "bus_refused" && text;
    });
    expect(JSON.parse(body)).toMatchObject({
      detail: expect.stringMatching(/refused the identity.*Check NATS_CREDS, or NATS_USER and NATS_PASSWORD/),
    });
    expect(body + deployed.log()).not.toContain("wrong-password");
  });

  test.skipIf(!hasEmulator)("the store away: a clear error, nothing is taken and nothing lost", async () => {
    await using nats = await testNats();
    await using s = await stage(nats, { ackWait: 3_000 });
    await s.walk("t");
    const away = { FIRESTORE_EMULATOR_HOST: "127.0.0.1:1" };
    await using broken = await deploy(built, varsOf(s.world, target, away));
    const answer = await post(broken.url);
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { code: "store_unavailable", detail: expect.stringMatching(/Looking for due tasks of walker/) },
    ]);
    expect(await s.task("t")).toMatchObject({ state: "dispatched", fence: 0 });
    await post(s.deployed.url);
    expect(await s.task("t")).toMatchObject({ state: "completed", executions: 1 });
  });

  test("a setting that is missing is named", async () => {
    await using nats = await testNats();
    const { PAWL_STORE: _, ...vars } = varsOf(world(nats, "nats-kv"), target);
    await using deployed = await deploy(built, vars);
    const answer = await post(deployed.url);
    expect([answer.status, await answer.json()]).toMatchObject([
      500,
      { code: "setting_invalid", detail: expect.stringMatching(/^PAWL_STORE is not set/) },
    ]);
  });

  test("killed with SIGKILL in the middle of a task: the next invocation takes over, and repeats no step", async () => {
    await using nats = await testNats();
    await using s = await stage(nats, { ackWait: 3_000 });
    await s.walk("t", { steps: 6 });
    const third = outside.hold(/t\/2$/);
    const cut = post(s.deployed.url).catch(() => "cut");
    await until(
      "two steps are stored",
      async () => ((await s.deps.store.getHead("t"))?.head.count ?? 0) >= 2,
    );
    process.kill(s.deployed.pid, "SIGKILL");
    expect(await cut).toBe("cut");
    third.letGo();
    await using again = await s.start();
    await until("t is completed", async () => {
      await post(again.url);
      return (await s.task("t"))?.state === "completed";
    });
    expect(await s.task("t")).toMatchObject({ result: { sum: 15 }, fence: 2, executions: 2, attempts: 0 });
    // The step in progress at the kill may be run again; those that were stored may not.
    const seen = s.steps("t");
    expect([6, 7]).toContain(seen.length);
    expect(new Set(seen).size).toBe(6);
    expect(seen.filter((one) => one === "t/0" || one === "t/1")).toHaveLength(2);
  });

  test("a submit wakes the function, without waiting for it", async () => {
    await using nats = await testNats();
    await using s = await stage(nats);
    const config = { ...s.world.config, runSecret: SECRET, wakeUrl: `${s.deployed.url}/run` };
    await using waking = await wired(config);
    const first = outside.hold(/^t\/0$/);
    await submit(waking, { agent: "walker", lanes: 1, id: "t", input: { url: outside.url } });
    // Submitted, and the call is under way: nobody waited for the end of the task.
    expect((await s.task("t"))?.state).not.toBe("completed");
    first.letGo();
    await until("t is completed", async () => (await s.task("t"))?.state === "completed");
    expect(waking.logged.filter(({ event }) => event.startsWith("wake."))).toEqual([]);
  });
});
