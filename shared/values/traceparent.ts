/** Where in somebody's trace something was asked for: the header `traceparent`, as https://www.w3.org/TR/trace-context has it. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** Whoever began the trace keeps it. */
  readonly sampled: boolean;
}

const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Of later versions more may follow, and nobody has to keep it. */
const LONGEST = 512;

/** Undefined where it is none: then it is as good as not given. */
export function readTraceparent(text: string | undefined | null): TraceParent | undefined {
  if (!text || text.length > LONGEST) return undefined;
  const [, traceId, spanId, flags, more] = FORM.exec(text.trim()) ?? [];
  if (!traceId || !spanId || !flags || (more && text.startsWith("00"))) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function sayTraceparent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** As it is kept: undefined where it is none. */
export function plainTraceparent(text: string | undefined | null): string | undefined {
  const found = readTraceparent(text);
  return found && sayTraceparent(found);
}
