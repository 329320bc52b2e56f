import { connect } from "node:net";
import { beforeAll, expect, test } from "vitest";
import type { Built } from "../../infra/build/build.ts";
import { TARGETS, type Target } from "../../infra/build/targets.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { serve } from "../../shared/runner/serve.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { agentOf } from "../support/bench.ts";
import { ALL } from "../support/http/api.ts";
import { follow } from "../support/http/sse.ts";
import { bundle, deploy, varsOf } from "../support/servers/platforms.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const built = new Map<Target, Built>();
beforeAll(async () => {
  for (const target of TARGETS) built.set(target, await bundle("api", target));
});

/** The API as deployed, and a server that can be asked who is connected and what they listen to. */
async function stage(target: Target) {
  const nats = await testNats();
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  const api = await deploy(built.get(target) as never, varsOf(w, target));
  const headers = { authorization: `Bearer ${token}` };
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${api.url}/v1/tasks${path}`, { ...init, headers: { ...headers, ...init.headers } });
  const submit = async (id: string) => {
    const body = JSON.stringify({ agent: "walker", input: {}, id });
    expect((await ask("", { method: "POST", body })).status).toBe(201);
  };
  const watched = async () => {
    const answer = await fetch(`${nats.monitorUrl}/connz?subs=1`);
    const { connections } = (await answer.json()) as { connections: { subscriptions_list?: string[] }[] };
    const subjects = connections.flatMap(({ subscriptions_list: list = [] }) => list);
    return { open: connections.length, listening: subjects.filter((one) => one.includes(".events.")).length };
  };
  return {
    deps,
    api,
    ask,
    submit,
    headers,
    watched,
    [Symbol.asyncDispose]: async () => {
      for (const one of [api, deps, nats]) await one[Symbol.asyncDispose]();
    },
  };
}

test.each(TARGETS)(
  "%s streams: what happened is there before the task is over, and others are served meanwhile",
  async (target) => {
    await using s = await stage(target);
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await s.submit("t");
    const events = await follow(s.ask("/t/events"));
    expect([events.response.status, events.response.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream",
    ]);
    await events.until("submit");
    const agent = agentOf(async ({ step }) => {
      for (const [i, gate] of gates.entries()) {
        await step(`s${i}`, () => i);
        await gate.promise;
      }
    });
    const serving = serve(s.deps, {
      name: "walker",
      agent,
      mode: "drain",
      stop: new AbortController().signal,
    });
    for (const [i, gate] of gates.entries()) {
      await events.until(`step s${i}#1`);
      // The task can't be over: it waits for the test.
      const [state, , listed] = await Promise.all([
        s.ask("/t").then(async (one) => ((await one.json()) as { state: string }).state),
        s.submit(`other${i}`),
        s.ask("?limit=5"),
      ]);
      expect([state, listed.status]).toEqual(["running", 200]);
      gate.resolve();
    }
    await events.rest();
    expect(events.words()).toEqual([
      "submit",
      "claim",
      "step s0#1",
      "step s1#1",
      "complete",
      "end completed",
    ]);
    const again = await follow(
      s.ask("/t/events", { headers: { "last-event-id": events.seen[2]?.id ?? "" } }),
    );
    await again.rest();
    expect(again.words()).toEqual(["step s1#1", "complete", "end completed"]);
    await serving;
  },
);

test.each(TARGETS)(
  "%s forgets a reader that hangs up, and its connection where it had one",
  async (target) => {
    await using s = await stage(target);
    await s.submit("t");
    await s.ask("/t");
    await until("nothing is under way", async () => (await s.watched()).open <= (target === "gcp" ? 2 : 1));
    const before = await s.watched();
    expect(before.listening).toBe(0);
    // A Worker hears of it only when it writes again, which it does every fifteen seconds.
    for (let round = 0; round < (target === "gcp" ? 3 : 1); round++) {
      const readers = await Promise.all(Array.from({ length: 4 }, () => follow(s.ask("/t/events"))));
      await Promise.all(readers.map((one) => one.until("submit")));
      await until("all are listened for", async () => (await s.watched()).listening === 4);
      await Promise.all(readers.map((one) => one.hangUp()));
      await until("they are forgotten", async () => (await s.watched()).listening === 0);
      await until("and their connections closed", async () => (await s.watched()).open === before.open);
    }
  },
);

test.each(TARGETS)("%s forgets a reader that hangs up before it is answered", async (target) => {
  await using s = await stage(target);
  await s.submit("t");
  const { hostname, port } = new URL(s.api.url);
  const request = `GET /v1/tasks/t/events HTTP/1.1\r\nhost: x\r\nauthorization: ${s.headers.authorization}\r\n\r\n`;
  const hangUpAfter = (ms: number) =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(request);
        setTimeout(() => socket.destroy(), ms);
      });
      socket.on("error", () => {}).on("close", () => resolve());
    });
  for (let round = 0; round < 5; round++)
    await Promise.all(Array.from({ length: 8 }, (_, i) => hangUpAfter(i * 2)));
  // An answer that comes after all of them is proof that theirs were worked on.
  expect((await s.ask("/t")).status).toBe(200);
  await until("they are forgotten", async () => (await s.watched()).listening === 0);
});

test("Cloud Run: told to end while somebody follows, it ends the stream and itself", async () => {
  await using s = await stage("gcp");
  await s.submit("t");
  const events = await follow(s.ask("/t/events"));
  await events.until("submit");
  process.kill(s.api.pid, "SIGTERM");
  await events.rest();
  expect(events.words()).toEqual(["submit"]);
  expect(await s.api.exited).toBe(0);
});
