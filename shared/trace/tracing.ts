import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { CallTrace, LogTrace, SendSpans, Trace } from "../ports/trace.ts";
import type { Task } from "../task/document.ts";
import { isFinal } from "../task/table.ts";
import { sayTraceparent } from "../values/traceparent.ts";
import { spanBuffer } from "./buffer.ts";
import { callTrace } from "./calls.ts";
import { executionId, type Ids, idsOf, type Sampling } from "./ids.ts";
import { claimSpan, spansOfWrite, type Telling } from "./life.ts";

export interface Tracing extends Pick<Deps, "clock" | "log" | "meter"> {
  readonly namespace: string;
  readonly sampling: Sampling;
  /** Whether prompts, answers and the words of errors are told. */
  readonly content: boolean;
  /** Longest that a span waits for others, in milliseconds. */
  readonly every: number;
  readonly send: SendSpans;
}

/** Tasks whose lines in the log are known for their trace: the newest of them. */
const MOST_KNOWN = 1_000;

/** Tells a backend of the tasks of this process. */
export function tracing(given: Tracing): Trace {
  const { namespace, sampling, content, clock, log } = given;
  const buffer = spanBuffer(given);
  const known = new Map<string, LogTrace>();

  const ids = (task: Task) => idsOf(task, namespace, sampling);
  const telling = (own: Ids): Telling => ({ ids: own, namespace, content });
  const remember = (task: Task, { traceId, life }: Ids) => {
    known.delete(task.id);
    const isRunning = task.state === "running";
    known.set(task.id, { trace_id: traceId, span_id: isRunning ? executionId(task, namespace) : life });
    if (known.size > MOST_KNOWN) known.delete(known.keys().next().value as string);
  };
  /** A trace is for people to look at: what goes wrong with it is none of the task's affair. */
  const safely = (task: Task, tell: (own: Ids) => void) => {
    try {
      const own = ids(task);
      tell(own);
    } catch (error) {
      log("warn", "trace.failed", { task: task.id, reason: messageOf(error) });
    }
  };

  return {
    moved: (before, now) =>
      safely(now, (own) => {
        // Of what is over, the execution's lines follow yet.
        if (!isFinal(now) || !known.has(now.id)) remember(now, own);
        if (!own.sampled) return;
        for (const span of spansOfWrite(before, now, telling(own), clock.now())) buffer.record(span);
      }),
    claimed: (task, since) =>
      safely(task, (own) => {
        if (own.sampled) buffer.record(claimSpan(task, since, own, clock.now()));
      }),
    call: (call): CallTrace => {
      const own = ids(call.task);
      return callTrace(call, telling(own), clock.now, own.sampled ? buffer.record : () => {});
    },
    traceparent: (task) => {
      const { traceId, sampled } = ids(task);
      return sayTraceparent({ traceId, spanId: executionId(task, namespace), sampled });
    },
    ofTask: (id) => known.get(id),
    flush: buffer.flush,
    close: buffer.close,
  };
}
