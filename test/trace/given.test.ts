import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { agentOf } from "../support/bench.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats } from "../support/servers/stores.ts";
import { given, OUTSIDE, TRACE, tracedStage, tree } from "../support/tracing.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("who publishes directly says in a header which trace it is; what is no traceparent is as good as not given", async () => {
  await using s = await tracedStage(nats, { tested: agentOf(() => "done") });
  const { namespace, generation } = s.deps.settings;
  const queue = { namespace, agent: "tested", lane: 0, generation };
  const publish = (taskId: string, traceparent: string) =>
    s.deps.bus.publish(queue, {
      taskId,
      msgId: taskId,
      data: new TextEncoder().encode('{"v":1,"input":{}}'),
      headers: { traceparent },
    });
  await publish("direct", given);
  await publish("odd", `00-${"0".repeat(32)}-${OUTSIDE}-01`);
  await publish("silent", given.replace(/1$/, "0"));
  await s.drain("tested");
  const of = (id: string) => s.receiver.spans.filter(({ attributes }) => attributes["pawl.task"] === id);
  expect(of("direct").find(({ name }) => name === "task tested")).toMatchObject({
    traceId: TRACE,
    parentSpanId: OUTSIDE,
  });
  expect(tree(of("odd"))).toEqual(["task tested", "  claim", "  invoke_agent tested"]);
  expect(of("odd")[0]?.traceId).not.toBe(TRACE);
  // Whoever began that trace does not keep it.
  expect(of("silent")).toEqual([]);
  expect((await s.deps.store.get("silent"))?.task).toMatchObject({ state: "completed" });
});

test.each([
  ["traceidratio", "0", 0],
  ["parentbased_traceidratio", "0", 1],
  ["always_off", "", 0],
])("%s of %s", async (OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, lives) => {
  await using s = await tracedStage(
    nats,
    { tested: agentOf(() => "done") },
    { OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG },
  );
  await s.submit("tested", "own");
  await s.submit("tested", "given", {}, { traceparent: given });
  await s.drain("tested");
  expect(s.receiver.spans.filter(({ name }) => name === "task tested")).toHaveLength(lives);
});

test("the command takes the trace that it was called in, and refuses what is typed and is none", async () => {
  await using s = await tracedStage(nats, { recorder: agentOf(() => "done") });
  const submitted = pawl(s.world, ["submit", "recorder", "{}", "--id", "t"], { TRACEPARENT: given });
  const refused = pawl(s.world, ["submit", "recorder", "{}", "--traceparent", "4bf92f"]);
  expect(await submitted.exited, submitted.text()).toBe(0);
  expect((await s.deps.store.get("t"))?.task.meta?.traceparent).toBe(given);
  const status = pawl(s.world, ["status", "t"], { OTEL_EXPORTER_OTLP_ENDPOINT: s.receiver.url });
  expect(await status.exited).toBe(0);
  expect(status.text()).toContain(`trace       ${TRACE}`);
  expect(await refused.exited).toBe(2);
  expect(refused.text()).toMatch(/--traceparent is "4bf92f"; it should be 00-<trace>-<span>-<flags>/);
});
