import type { Deps } from "../ports/deps.ts";
import type { SendSpans, Span } from "../ports/trace.ts";
import { type Policy, policies } from "../retry/policies.ts";
import { pauseAfter } from "../retry/retry.ts";

/** Most spans that wait, those under way included: what comes on top is dropped, and counted. */
export const MOST_WAITING = 2_048;
const BATCH = 512;

export interface SpanBuffer {
  record(span: Span): void;
  flush(ms: number): Promise<void>;
  close(ms: number): Promise<void>;
}

export interface Buffering extends Pick<Deps, "clock" | "log" | "meter"> {
  readonly send: SendSpans;
  /** Longest that a span waits for others to be sent along with, in milliseconds. */
  readonly every: number;
}

/** Spans on their way. Work never waits for them: a receiver that is away costs memory, up to a bound, and then spans. */
export function spanBuffer({ send, every, clock, log, meter }: Buffering): SpanBuffer {
  const { tries = 1 }: Policy = policies.spans;
  let waiting: Span[] = [];
  let sending: Promise<void> | undefined;
  let failures = 0;
  let notBefore = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isTold = false;
  /** Somebody has waited in vain for what is under way. */
  let isSlow = false;

  const drop = (count: number, why: string) => {
    if (count > 0) meter.count("spans_dropped", { why }, count);
  };
  const tell = (why: string) => {
    if (!isTold) log("warn", "spans.unsent", { reason: why });
    isTold = true;
  };
  const sendOne = async () => {
    const batch = waiting.slice(0, BATCH);
    const sent = await send(batch);
    if (sent.kind === "again" && failures + 1 < tries) {
      failures++;
      notBefore = clock.monotonic() + (sent.after ?? pauseAfter("spans", failures));
      return tell(sent.why);
    }
    waiting = waiting.slice(batch.length);
    failures = 0;
    if (sent.kind === "taken") {
      isTold = false;
      return drop(sent.rejected, "rejected");
    }
    tell(sent.why);
    drop(batch.length, sent.kind === "again" ? "unreachable" : "refused");
  };
  const sendSome = (): Promise<void> => {
    sending ??= sendOne().finally(() => {
      sending = undefined;
      isSlow = false;
      // A refusal may ask for a longer pause than the timer has.
      unschedule();
      schedule();
    });
    return sending;
  };
  const schedule = () => {
    if (timer !== undefined || waiting.length === 0) return;
    const least = Math.max(0, notBefore - clock.monotonic());
    timer = setTimeout(
      () => {
        timer = undefined;
        void sendSome();
      },
      Math.max(least, waiting.length >= BATCH ? 0 : every),
    );
    // Alone it keeps no process alive, where there are processes.
    (timer as { unref?: () => void }).unref?.();
  };
  const unschedule = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const sendAll = async (ms: number, isLast: boolean) => {
    const over = new AbortController();
    let isLate = false;
    const late = clock.sleep(ms, over.signal).then(() => {
      isLate = true;
    });
    while (waiting.length > 0 && !isLate) {
      if (!isLast && (isSlow || notBefore > clock.monotonic())) break;
      await Promise.race([clock.sleep(notBefore - clock.monotonic(), over.signal), late]);
      if (!isLate) await Promise.race([sendSome(), late]);
    }
    isSlow ||= isLate && sending !== undefined;
    over.abort("flushed");
  };
  return {
    record: (span) => {
      if (waiting.length >= MOST_WAITING) return drop(1, "queue_full");
      waiting.push(span);
      if (waiting.length === BATCH) unschedule();
      if (sending === undefined) schedule();
    },
    flush: (ms) => sendAll(ms, false),
    close: async (ms) => {
      await sendAll(ms, true);
      unschedule();
      drop(waiting.length, "unsent");
      waiting = [];
    },
  };
}
