import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { until } from "../time/until.ts";

/** A span as the receiver understood it. */
export interface Received {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly message: string | undefined;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly service: unknown;
}

export interface OtlpReceiver extends AsyncDisposable {
  /** What OTEL_EXPORTER_OTLP_ENDPOINT is set to. */
  readonly url: string;
  readonly spans: readonly Received[];
  /** All that was sent, as it came. */
  text(): string;
  readonly headers: readonly IncomingHttpHeaders[];
  /** By name, once such a span is there. */
  span(name: string, isMeant?: (span: Received) => boolean): Promise<Received>;
  /** Answers so from now on; undefined: not at all. */
  answer(status: number | undefined, body?: object, headers?: Record<string, string>): void;
}

/** A receiver of OTLP over HTTP in JSON, strict: what is not of the protocol is an error in the test. */
export async function otlpReceiver(): Promise<OtlpReceiver> {
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const spans: Received[] = [];
  const wrong: unknown[] = [];
  let answer: { status: number | undefined; body: object; headers: Record<string, string> } = {
    status: 200,
    body: {},
    headers: {},
  };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    bodies.push(text);
    headers.push(request.headers);
    try {
      expect([request.method, request.url]).toEqual(["POST", "/v1/traces"]);
      expect(request.headers["content-type"]).toBe("application/json");
      if (answer.status === 200 || answer.status === undefined) spans.push(...spansIn(JSON.parse(text)));
    } catch (error) {
      wrong.push(error);
    }
    if (answer.status === undefined) return;
    response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
    response.end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sound = () => expect(wrong).toEqual([]);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get spans() {
      sound();
      return spans;
    },
    headers,
    text: () => bodies.join("\n"),
    span: (name, isMeant = () => true) =>
      until(`a span ${name} comes`, async () => {
        sound();
        return spans.find((one) => one.name === name && isMeant(one));
      }),
    answer: (status, body = {}, more = {}) => {
      answer = { status, body, headers: more };
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      sound();
    },
  };
}

type Json = Record<string, unknown>;

function spansIn(body: Json): Received[] {
  const all = body.resourceSpans as { resource: Json; scopeSpans: { scope: Json; spans: Json[] }[] }[];
  return all.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) => {
      expect(scope).toMatchObject({ name: "pawl" });
      const of = attributesOf(resource.attributes);
      return spans.map((span) => received(span, of));
    }),
  );
}

function received(span: Json, resource: Readonly<Record<string, unknown>>): Received {
  const known = ["traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"];
  expect([...known, "attributes", "status", "links"]).toEqual(expect.arrayContaining(Object.keys(span)));
  expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
  if ("parentSpanId" in span) expect(span.parentSpanId).toMatch(/^[0-9a-f]{16}$/);
  for (const at of [span.startTimeUnixNano, span.endTimeUnixNano]) expect(at).toMatch(/^\d{19}$/);
  expect([1, 3, 4, 5]).toContain(span.kind);
  const status = (span.status ?? {}) as { code?: number; message?: string };
  expect([undefined, 2]).toContain(status.code);
  const at = (nanos: unknown) => Number(String(nanos).slice(0, -6));
  const [start, end] = [at(span.startTimeUnixNano), at(span.endTimeUnixNano)];
  expect(end).toBeGreaterThanOrEqual(start);
  return {
    traceId: span.traceId as string,
    spanId: span.spanId as string,
    parentSpanId: span.parentSpanId as string | undefined,
    name: span.name as string,
    kind: span.kind as number,
    start,
    end,
    attributes: attributesOf(span.attributes),
    failed: status.code === 2,
    message: status.message,
    links: (span.links ?? []) as Received["links"],
    service: resource["service.name"],
  };
}

function attributesOf(list: unknown): Record<string, unknown> {
  const entries = (list as { key: string; value: Json }[]).map(({ key, value }) => [key, valueIn(value)]);
  const all = Object.fromEntries(entries) as Record<string, unknown>;
  expect(Object.keys(all), "no name twice").toHaveLength(entries.length);
  return all;
}

function valueIn(value: Json): unknown {
  const [[kind, is] = [], ...more] = Object.entries(value);
  expect(more).toEqual([]);
  switch (kind) {
    case "stringValue":
      expect(is).toBeTypeOf("string");
      return is;
    case "boolValue":
      expect(is).toBeTypeOf("boolean");
      return is;
    case "intValue":
      expect(is).toMatch(/^-?\d+$/);
      return Number(is);
    case "doubleValue":
      expect(is).toBeTypeOf("number");
      return is;
    default:
      expect(kind).toBe("arrayValue");
      return ((is as Json).values as Json[]).map(valueIn);
  }
}
