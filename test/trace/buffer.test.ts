import { describe, expect, test } from "vitest";
import { otlp } from "../../shared/adapters/otlp.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { SendSpans, Sent, Span } from "../../shared/ports/trace.ts";
import { MOST_WAITING, spanBuffer } from "../../shared/trace/buffer.ts";
import { otlpReceiver } from "../support/http/otlp.ts";

const TAKEN: Sent = { kind: "taken", rejected: 0 };

const span = (name: string): Span => ({
  traceId: "1".repeat(32),
  spanId: "2".repeat(16),
  name,
  kind: "internal",
  start: 1_700_000_000_000,
  end: 1_700_000_000_001,
  attributes: {},
});

/** What was sent, dropped and said. Pauses take no time, but for the longest, which never end. */
function stage(send: (spans: readonly Span[], count: number) => Promise<Sent>) {
  const sent: string[][] = [];
  const dropped: Record<string, number> = {};
  const said: string[] = [];
  let passed = 0;
  const now = () => performance.now() + passed;
  const buffer = spanBuffer({
    send: (spans) => {
      sent.push(spans.map(({ name }) => name));
      return send(spans, sent.length);
    },
    // Nothing is sent but by the test's word.
    every: 2 ** 30,
    clock: {
      now,
      monotonic: now,
      sleep: async (ms, signal) => {
        if (ms > 100 && ms < 60_000) passed += ms;
        else await systemClock.sleep(ms, signal);
      },
    },
    log: (_, event, fields) => void said.push(`${event}: ${fields?.reason}`),
    meter: {
      count: (counter, labels, by = 1) => {
        expect(counter).toBe("spans_dropped");
        const { why } = labels as { why: string };
        dropped[why] = (dropped[why] ?? 0) + by;
      },
      flush: async () => {},
    },
  });
  const pass = (ms: number) => {
    passed += ms;
  };
  return { buffer, sent, dropped, said, pass };
}

describe("spans on their way", () => {
  test("go in batches, in order", async () => {
    const s = stage(async () => TAKEN);
    for (let i = 0; i < 600; i++) s.buffer.record(span(String(i)));
    await s.buffer.flush(60_000);
    expect(s.sent.map((one) => one.length)).toEqual([512, 88]);
    expect(s.sent.flat()).toEqual(Array.from({ length: 600 }, (_, i) => String(i)));
    expect([s.dropped, s.said]).toEqual([{}, []]);
  });

  test("are kept while the receiver is away, as many as there is room for; the rest is dropped, and counted", async () => {
    let isAway = true;
    const s = stage(async () => (isAway ? { kind: "again", why: "away", after: 70_000 } : TAKEN));
    for (let i = 0; i < MOST_WAITING + 3; i++) s.buffer.record(span(String(i)));
    expect(s.dropped).toEqual({ queue_full: 3 });
    await s.buffer.flush(20);
    expect([s.sent.length, s.said]).toEqual([1, ["spans.unsent: away"]]);
    isAway = false;
    s.pass(70_000);
    await s.buffer.flush(70_000);
    expect(s.sent.slice(1).map((one) => one.length)).toEqual([512, 512, 512, 512]);
    expect(s.dropped).toEqual({ queue_full: 3 });
  });

  test("are tried again after a pause, and given up after six tries: the next batch goes on", async () => {
    const s = stage(async (spans) =>
      spans[0]?.name === "0" ? { kind: "again", why: "answered 503" } : TAKEN,
    );
    for (let i = 0; i < 513; i++) s.buffer.record(span(String(i)));
    await s.buffer.close(1_000_000);
    expect(s.sent.map((one) => one.length)).toEqual([512, 512, 512, 512, 512, 512, 1]);
    expect(s.dropped).toEqual({ unreachable: 512 });
    // Once, not at each try.
    expect(s.said).toEqual(["spans.unsent: answered 503"]);
  });

  test("are waited for once where the receiver is slow, and not at all while it is left alone", async () => {
    const slow = Promise.withResolvers<Sent>();
    const s = stage(() => slow.promise);
    s.buffer.record(span("a"));
    await s.buffer.flush(20);
    // Who waited now would wait for longer than this test may take.
    await s.buffer.flush(3_600_000);
    slow.resolve({ kind: "again", why: "away", after: 3_600_000 });
    await slow.promise;
    await s.buffer.flush(3_600_000);
    expect(s.sent).toHaveLength(1);
  });

  test("that are refused are not tried again", async () => {
    const s = stage(async () => ({ kind: "refused", why: "answered 401" }));
    s.buffer.record(span("a"));
    await s.buffer.flush(60_000);
    expect([s.sent, s.dropped, s.said]).toEqual([[["a"]], { refused: 1 }, ["spans.unsent: answered 401"]]);
  });

  test("that the receiver took in part are counted", async () => {
    const s = stage(async () => ({ kind: "taken", rejected: 2 }));
    for (const name of ["a", "b", "c"]) s.buffer.record(span(name));
    await s.buffer.flush(60_000);
    expect(s.dropped).toEqual({ rejected: 2 });
  });

  test("hold up nobody who ends: what the receiver does not take in time is lost, and counted", async () => {
    const s = stage(() => new Promise(() => {}));
    s.buffer.record(span("a"));
    s.buffer.record(span("b"));
    await s.buffer.close(20);
    expect(s.dropped).toEqual({ unsent: 2 });
  });
});

describe("a request of OTLP", () => {
  const sender = (url: string, timeout = 5_000): SendSpans =>
    otlp({ url: `${url}/v1/traces`, headers: {}, resource: { "service.name": "mine" }, timeout });

  test.each([
    [200, {}, {}, TAKEN],
    [200, { partialSuccess: { rejectedSpans: "3", errorMessage: "no" } }, {}, { kind: "taken", rejected: 3 }],
    [400, {}, {}, { kind: "refused", why: "the receiver of traces answered 400" }],
    [
      301,
      {},
      { location: "http://127.0.0.1:1/elsewhere" },
      { kind: "refused", why: "the receiver of traces answered 301" },
    ],
    [
      503,
      {},
      { "retry-after": "7" },
      { kind: "again", why: "the receiver of traces answered 503", after: 7_000 },
    ],
    [429, {}, {}, { kind: "again", why: "the receiver of traces answered 429" }],
  ])("answered %i %j", async (status, body, headers, sent) => {
    await using receiver = await otlpReceiver();
    receiver.answer(status, body, headers as Record<string, string>);
    expect(await sender(receiver.url)([span("a")])).toEqual(sent);
  });

  test("that nobody answers may be made again", async () => {
    await using receiver = await otlpReceiver();
    receiver.answer(undefined);
    expect(await sender(receiver.url, 50)([span("a")])).toMatchObject({ kind: "again" });
    const away = await sender("http://127.0.0.1:1")([span("a")]);
    expect(away).toMatchObject({
      kind: "again",
      why: expect.stringContaining("can't be reached: fetch failed"),
    });
  });
});
