import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { ALL } from "../support/http/api.ts";
import { type OtlpReceiver, otlpReceiver } from "../support/http/otlp.ts";
import { observer } from "../support/observer.ts";
import { bundle, deploy, post, varsOf, witness } from "../support/servers/platforms.ts";
import { pawl } from "../support/servers/runners.ts";
import { type TestWorld, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";
import { tracedTo } from "../support/tracing.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Nothing is sent but by whoever ends. */
const AT_THE_END = { OTEL_BSP_SCHEDULE_DELAY: "999999" };

/** How a task of `walker` is taken by a process that is then killed, and by another one after it. */
type Runs = (
  w: TestWorld,
  env: Record<string, string>,
) => AsyncDisposable & {
  /** Begins; killed by the function that it returns. */
  first(): Promise<() => Promise<unknown>>;
  second(isDone: () => Promise<boolean>): Promise<void>;
};

const node: Runs = (w, env) => ({
  first: async () => {
    const runner = pawl(w, ["run", "walker"], env);
    return () => runner.kill("SIGKILL");
  },
  second: async () => {
    const runner = pawl(w, ["run", "walker", "--drain", "--json"], { ...env, ...AT_THE_END });
    expect(await runner.exited, runner.text()).toBe(0);
    // Its lines say where they belong to.
    expect(runner.text()).toMatch(
      /"event":"task.handled".*"trace_id":"[0-9a-f]{32}","span_id":"[0-9a-f]{16}"/,
    );
  },
  [Symbol.asyncDispose]: async () => {},
});

const workerd: Runs = (w, env) => {
  const stack = new AsyncDisposableStack();
  const start = async (more: Record<string, string> = {}) =>
    stack.use(
      await deploy(await bundle("walker", "cloudflare"), varsOf(w, "cloudflare", { ...env, ...more })),
    );
  return {
    first: async () => {
      const { url, pid, exited } = await start();
      const cut = post(url).catch(() => "cut");
      return async () => {
        process.kill(pid, "SIGKILL");
        return Promise.all([cut, exited]);
      };
    },
    second: async (isDone) => {
      const again = await start(AT_THE_END);
      await until("it is done", async () => {
        await post(again.url);
        return isDone();
      });
      expect(again.log()).toMatch(/"event":"task.handled".*"trace_id":"[0-9a-f]{32}"/);
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
};

// They wait for leases: together they wait once.
test.concurrent.each([
  ["a process", node],
  ["workerd", workerd],
] as const)("%s is killed and another takes over: one trace has both executions", async (_, runs) => {
  await using receiver = await otlpReceiver();
  await using outside = await witness();
  const w = world(nats, "nats-kv", { ackWait: 3_000 });
  await using deps = await observer(w);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  await using by = runs(w, tracedTo(receiver));
  await submit(deps, { agent: "walker", lanes: 1, id: "t", input: { url: outside.url, steps: 3 } });

  const second = outside.hold(/t\/1$/);
  const kill = await by.first();
  const early = await receiver.span("step walk");
  await until("it is in the next step", async () => outside.seen.includes("t/1"));
  await kill();
  second.letGo();
  await by.second(async () => (await deps.store.get("t"))?.task.state === "completed");

  const life = await receiver.span("task walker");
  const { spans } = receiver;
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  const runsOf = spans.filter(({ name }) => name === "invoke_agent walker");
  const [dead, successor] = runsOf.toSorted((a, b) => a.start - b.start);
  expect(runsOf).toHaveLength(2);
  expect(dead).toMatchObject({
    failed: true,
    attributes: {
      "pawl.fence": 1,
      "pawl.silent": true,
      "error.type": "fell_silent",
      "pawl.ended_by": "takeover",
    },
  });
  expect(successor).toMatchObject({
    failed: false,
    attributes: { "pawl.fence": 2, "pawl.ended_by": "complete" },
  });
  expect(dead?.attributes["pawl.taken_over_by"]).toBe(successor?.attributes["pawl.runner"]);
  // What the dead one had told is below it, as if it had lived to tell of itself.
  expect(early.parentSpanId).toBe(dead?.spanId);
  const later = spans.filter(({ parentSpanId }) => parentSpanId === successor?.spanId);
  expect(later.map(({ name }) => name)).toEqual(["step walk#2", "step walk#3"]);
  expect(
    spans.filter(({ name }) => name === "claim").map(({ attributes }) => attributes["pawl.claim"]),
  ).toEqual(["claim", "takeover"]);
  for (const one of [dead, successor]) expect(one?.parentSpanId).toBe(life.spanId);
  expect(life.attributes).toMatchObject({ "pawl.executions": 2, "pawl.state": "completed" });
});

test("on Cloud Run an invocation has sent its spans when it answers", async () => {
  await using receiver = await otlpReceiver();
  await using outside = await witness();
  const w = world(nats, "nats-kv");
  await using deps = await observer(w);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  await submit(deps, { agent: "walker", lanes: 1, id: "t", input: { url: outside.url } });
  await using invoked = await deploy(
    await bundle("walker", "gcp"),
    varsOf(w, "gcp", { ...tracedTo(receiver), ...AT_THE_END }),
  );
  expect(await (await post(invoked.url)).json()).toMatchObject({ handled: { completed: 1 } });
  expect(receiver.spans.map(({ name }) => name).sort()).toEqual([
    "claim",
    "dispatch",
    "invoke_agent walker",
    "step walk",
    "task walker",
  ]);
});

test("the API on workerd takes the trace from the request's header, and tells of the submit after its answer", async () => {
  await using receiver: OtlpReceiver = await otlpReceiver();
  const w = world(nats, "nats-kv");
  await using deps = await observer(w);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  // Who waits for this receiver waits for as long as the test.
  receiver.answer(undefined);
  await using api = await deploy(
    await bundle("api", "cloudflare"),
    varsOf(w, "cloudflare", tracedTo(receiver)),
  );
  const answer = await fetch(`${api.url}/v1/tasks`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    },
    body: JSON.stringify({ agent: "walker", input: { url: "http://127.0.0.1" }, id: "t" }),
  });
  expect(answer.status, await answer.text()).toBe(201);
  const span = await receiver.span("submit");
  expect(span).toMatchObject({ traceId: "4bf92f3577b34da6a3ce929d0e0e4736", kind: 4 });
  expect((await deps.store.get("t"))?.task.meta).toMatchObject({
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  });
});
