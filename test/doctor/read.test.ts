import { describe, expect, test } from "vitest";
import { nanosOf } from "../../infra/doctor/fields.ts";
import { contractsOf, partsIn } from "../../infra/doctor/read.ts";

const read = (...given: readonly unknown[]) =>
  contractsOf(
    partsIn(
      given.map((one, i) => ({
        file: `${i}.json`,
        text: typeof one === "string" ? one : JSON.stringify(one),
      })),
    ),
  );

const CONSUMER = { durable_name: "w", ack_policy: "explicit", ack_wait: 30_000_000_000 };
const INFO = {
  stream: {
    config: { name: "Q", max_age: 0 },
    created: "2026-11-01T00:00:00Z",
    state: { messages: 0, last_seq: 0 },
  },
  consumer: { stream_name: "Q", name: "w", config: CONSUMER, delivered: { consumer_seq: 0, stream_seq: 0 } },
};

describe("one stream and consumer, however they are written", () => {
  const wanted = { name: "Q > w", stream: { name: "Q", max_age: 0 }, consumer: CONSUMER };
  test.each([
    ["whole information in two files", [INFO.stream, INFO.consumer]],
    ["in any order", [INFO.consumer, INFO.stream]],
    ["bare", [{ name: "Q", max_age: 0 }, CONSUMER]],
    ["in one object", [{ stream: INFO.stream, consumer: CONSUMER }]],
    [
      "with a list of consumers, and texts for times",
      [{ stream: INFO.stream, consumers: [{ ...CONSUMER, ack_wait: "30s" }] }],
    ],
    ["as a request of one", [INFO.stream, { stream_name: "Q", config: CONSUMER }]],
  ])("%s", (_, given) => {
    expect(read(...given)).toMatchObject([wanted]);
  });

  test("each consumer of several finds its stream; those of one stream are a contract each", () => {
    const other = { ...INFO.consumer, name: "v", stream_name: "R" };
    const streams = [INFO.stream, { config: { name: "R" } }];
    expect(read(...streams, INFO.consumer, other).map(({ name }) => name)).toEqual(["Q > w", "R > v"]);
    expect(read(INFO.stream, CONSUMER, { ...CONSUMER, durable_name: "v" }).map(({ name }) => name)).toEqual([
      "Q > w",
      "Q > v",
    ]);
  });

  test("what is said of the application in several files is one", () => {
    const [contract] = read(
      CONSUMER,
      { application: { heartbeat: "5s" } },
      { application: { record_ttl: "none" }, server: "v2.12.1" },
    );
    expect(contract).toMatchObject({ application: { heartbeat: 5_000, record_ttl: 0 }, server: "v2.12.1" });
  });
});

test.each([
  ["30s", 30e9],
  ["1h30m", 5_400e9],
  ["72h0m0s", 259_200e9],
  ["1.5m", 90e9],
  ["250ms", 0.25e9],
  ["7d", 604_800e9],
  [5_000, 5_000],
  ["30", undefined],
  ["soon", undefined],
  ["", undefined],
  ["-5s", undefined],
  [null, undefined],
])("%o is a time, or none", (text, nanos) => {
  expect(nanosOf(text)).toBe(nanos);
});

describe("what can't be read says what, where, and what it should be", () => {
  test.each([
    ["[1]", /^0\.json: it is no object\. It should be what `nats stream info --json`/],
    ["{", /^0\.json: It is not JSON/],
    ['{"__proto__": {}}', /^0\.json: /],
    [`{"stream": ${"[".repeat(80)}${"]".repeat(80)}}`, /^0\.json: It is nested 81 levels deep/],
    [{}, /^0\.json: it has nothing in it, by which it is neither a stream nor a consumer/],
    [{ colour: 1 }, /it has colour, by which it is neither/],
    [
      { stream: { name: "Q" }, aplication: {} },
      /It has a field "aplication" that it can't have\. Was application meant\?/,
    ],
    [{ stream: 3 }, /stream should be an object/],
    [{ stream: {}, consumers: {} }, /consumers should be a list/],
    [{ stream: {}, application: [] }, /application should be an object/],
    [{ stream: {}, server: "new" }, /server is "new"; it should be a version such as "2\.10\.27"/],
    [
      { ...CONSUMER, ack_wait: "5 minutes" },
      /^consumer\.ack_wait is "5 minutes"; it should be a time: "30s", "1h30m"/,
    ],
    [{ ...CONSUMER, backoff: "30s" }, /consumer\.backoff is "30s"; it should be a list, of 1000 at most/],
    [{ ...CONSUMER, backoff: ["30"] }, /consumer\.backoff is \["30"\]; it should be a time/],
    [
      { ...CONSUMER, backoff: Array.from({ length: 1_001 }, () => "1s") },
      /^consumer\.backoff is \["1s",.*; it should be a list, of 1000 at most/,
    ],
    [
      { storage: "file", sources: [null] },
      /stream\.sources is \[null\]; it should be an object with a "name"/,
    ],
    [{ storage: "file", subjects: "a.*" }, /stream\.subjects is "a\.\*"; it should be a list/],
    [{ ...CONSUMER, max_deliver: "3" }, /consumer\.max_deliver is "3"; it should be a whole number/],
    [
      { ...CONSUMER, ack_policy: "manual" },
      /consumer\.ack_policy is "manual"; it should be one of explicit, all, none/,
    ],
    [{ storage: "disk" }, /stream\.storage is "disk"; it should be one of file, memory/],
    [{ ...CONSUMER, flow_control: 1 }, /consumer\.flow_control is 1; it should be true or false/],
    [
      { consumer: CONSUMER, application: { heart_beat: "2s" } },
      /application has a field "heart_beat" that it can't have\. Was heartbeat meant\?/,
    ],
    [
      { consumer: CONSUMER, application: { colour: 1 } },
      /"colour" that it can't have\. It can have: heartbeat, longest_work/,
    ],
    [
      { consumer: CONSUMER, application: { acks: ["nack"] } },
      /application\.acks is "nack"; it should be one of ack, nak, nak_delay/,
    ],
    [{ application: { heartbeat: "5s" } }, /There is no stream and no consumer in it/],
  ])("%j", (given, says) => {
    const said = () => read(given);
    expect(said).toThrow(says);
    expect(said).toThrow(expect.objectContaining({ code: "usage" }));
  });

  test("a text that is no time, however long, at once", () => {
    expect(nanosOf("1".repeat(1_000_000))).toBeUndefined();
  });

  test("names that every object has are none of JetStream's", () => {
    const [contract] = read({ ...CONSUMER, constructor: 1 });
    expect(contract?.unknown).toEqual([{ part: "consumer", field: "constructor" }]);
    const said = () => read({ consumer: CONSUMER, application: { toString: 1 } });
    expect(said).toThrow(/application has a field "toString" that it can't have/);
  });

  test("a consumer whose stream is not known", () => {
    expect(() =>
      read({ name: "Q", retention: "limits" }, { name: "R", retention: "limits" }, CONSUMER),
    ).toThrow("There are 2 streams, and consumer w does not say which is its own: give its stream_name");
    expect(() => read({ name: "R", retention: "limits" }, INFO.consumer)).toThrow(
      "Consumer w is of stream Q, and the stream given is R",
    );
  });
});
