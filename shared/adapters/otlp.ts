import { messageOf } from "../errors/errors.ts";
import type { SendSpans, Sent, Span, SpanValue } from "../ports/trace.ts";

export interface OtlpOptions {
  /** Where spans go: ends in /v1/traces. */
  readonly url: string;
  /** May hold a key: they are told to nobody else. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the process: service.name and what else is said of it. */
  readonly resource: Readonly<Record<string, string>>;
  /** Longest wait for an answer, in milliseconds. */
  readonly timeout: number;
}

const KIND = { internal: 1, client: 3, producer: 4, consumer: 5 } as const satisfies Record<
  Span["kind"],
  number
>;
const ERROR = 2;
/** Answers after which the same spans may be sent again, by the protocol. */
const LATER: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Sends spans as OTLP over HTTP, in JSON: https://opentelemetry.io/docs/specs/otlp. One request, tried once. */
export function otlp({ url, headers, resource, timeout }: OtlpOptions): SendSpans {
  const of = { attributes: attributes(resource) };
  const scope = { name: "pawl" };
  return async (spans): Promise<Sent> => {
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({
          resourceSpans: [{ resource: of, scopeSpans: [{ scope, spans: spans.map(encoded) }] }],
        }),
        // It could lead anywhere, with the key that is in the headers.
        redirect: "manual",
        signal: AbortSignal.timeout(timeout),
      });
      if (response.ok) return { kind: "taken", rejected: await rejectedIn(response) };
      await response.body?.cancel();
      const why = `the receiver of traces answered ${response.status}`;
      if (!LATER.has(response.status)) return { kind: "refused", why };
      const seconds = Number(response.headers.get("retry-after") ?? "none");
      return { kind: "again", why, ...(seconds >= 0 && { after: seconds * 1_000 }) };
    } catch (error) {
      return { kind: "again", why: `the receiver of traces can't be reached: ${reasonOf(error)}` };
    }
  };
}

/** What Node says of a connection that was not made stands in the cause. */
function reasonOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return cause?.code === undefined ? messageOf(error) : `${messageOf(error)} (${String(cause.code)})`;
}

/** A receiver may take some of them. What it says besides is for nobody. */
async function rejectedIn(response: Response): Promise<number> {
  const answer = (await response.json().catch(() => undefined)) as
    | { readonly partialSuccess?: { readonly rejectedSpans?: unknown } }
    | undefined;
  return Number(answer?.partialSuccess?.rejectedSpans ?? 0) || 0;
}

function encoded({ traceId, spanId, parentId, name, kind, start, end, error, links, ...span }: Span) {
  const all = { ...span.attributes, ...(error && { "error.type": error.type }) };
  return {
    traceId,
    spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name,
    kind: KIND[kind],
    startTimeUnixNano: nanos(start),
    // Clocks of several machines may be apart.
    endTimeUnixNano: nanos(Math.max(start, end)),
    attributes: attributes(all),
    ...(error && { status: { code: ERROR, ...(error.message !== undefined && { message: error.message }) } }),
    ...(links && { links }),
  };
}

const nanos = (ms: number): string => `${Math.round(ms)}000000`;

function attributes(all: Readonly<Record<string, SpanValue | undefined>>) {
  return Object.entries(all).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: SpanValue): object {
  switch (typeof value) {
    case "string":
      return { stringValue: value };
    case "boolean":
      return { boolValue: value };
    case "number":
      // 64 bits are a text in JSON.
      return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
    default:
      return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } };
  }
}
