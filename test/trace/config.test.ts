import { describe, expect, test } from "vitest";
import { configOf } from "../../functions/wiring/config.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import { plainTraceparent, readTraceparent } from "../../shared/values/traceparent.ts";

const least = { NATS_URL: "nats://127.0.0.1:4222", PAWL_STORE: "nats-kv" };
const traces = (env: Record<string, string>) => configOf(readVariables({ ...least, ...env })).traces;

describe("traces are as OpenTelemetry's variables say", () => {
  test("none without an address, or where they are off", () => {
    expect(traces({})).toBeUndefined();
    expect(
      traces({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://here", OTEL_TRACES_SAMPLER: "always_off" }),
    ).toBeUndefined();
  });

  test.each([
    ["http://here:4318", "http://here:4318/v1/traces"],
    ["http://here:4318/otlp/", "http://here:4318/otlp/v1/traces"],
  ])("to %s", (address, url) => {
    expect(traces({ OTEL_EXPORTER_OTLP_ENDPOINT: address })).toEqual({
      url,
      headers: {},
      timeout: 10_000,
      every: 5_000,
      resource: { "service.name": "pawl" },
      sampling: { ratio: 1, byParent: true },
      content: false,
    });
    expect(
      traces({ OTEL_EXPORTER_OTLP_ENDPOINT: address, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://there/x" })
        ?.url,
    ).toBe("http://there/x");
  });

  test("headers and attributes are lists of pairs", () => {
    const found = traces({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://here",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20a%3D=, x-scope = b",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment.name=staging",
      OTEL_SERVICE_NAME: "mine",
    });
    expect(found?.headers).toEqual({ authorization: "Basic a==", "x-scope": "b" });
    expect(found?.resource).toEqual({ "service.name": "mine", "deployment.environment.name": "staging" });
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://ann:hunter2@here" }, "has a name or a password in it"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "hunter2" }, "OTEL_EXPORTER_OTLP_HEADERS is not well-formed"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "a=hunter2%0d%0ab" }, "OTEL_EXPORTER_OTLP_HEADERS is not well-formed"],
    [{ OTEL_TRACES_SAMPLER: "some" }, "should be one of always_on"],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, "should be a share from 0 to 1"],
  ])("%j is refused, and no secret of it is shown", (env, why) => {
    const problems = readVariables({ ...least, ...env }).problems.join("\n");
    expect(problems).toContain(why);
    expect(problems).not.toContain("hunter2");
  });
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test.each([
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, false],
  // Of a later version what is known of it is read.
  [`cc-${TRACE}-${SPAN}-09-more`, true],
])("%s is a traceparent", (text, sampled) => {
  expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
  expect(plainTraceparent(text)).toBe(`00-${TRACE}-${SPAN}-0${sampled ? 1 : 0}`);
});

test.each([
  "",
  "nothing",
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${"0".repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${"0".repeat(16)}-01`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-01\r\nx: y`,
  `cc-${TRACE}-${SPAN}-01-${"x".repeat(600)}`,
])("%j is none", (text) => {
  expect(plainTraceparent(text)).toBeUndefined();
});
