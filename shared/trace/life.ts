import { minus } from "../journal/cost.ts";
import type { Span, SpanValue } from "../ports/trace.ts";
import type { HistoryEntry, Millis, State, Task } from "../task/document.ts";
import { isFinal } from "../task/table.ts";
import { executionId, freshSpanId, type Ids, lifeId, livesBefore, stayId } from "./ids.ts";

/** What is needed to tell of a task. */
export interface Telling {
  readonly ids: Ids;
  readonly namespace: string;
  /** What failed may be told in its own words. */
  readonly content: boolean;
}

/** A stay in a state, as it is called; of an execution, the agent that is invoked. */
const NAMES: Readonly<Record<State, string>> = {
  scheduled: "scheduled",
  dispatched: "dispatch",
  running: "invoke_agent",
  waiting: "waiting",
  in_doubt: "in doubt",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** Events by which an execution ends without a word of its holder. */
const SILENT: ReadonlySet<string> = new Set(["takeover", "requeue", "exhaust"]);
/** And those that say that it failed. */
const FAILED: ReadonlySet<string> = new Set(["retry", "hold", "fail"]);

/** What a write has ended: the stay in the state before, and perhaps the task. */
export function spansOfWrite(before: Task | undefined, now: Task, telling: Telling, at: Millis): Span[] {
  const spans: Span[] = [];
  const last = now.history.at(-1);
  if (!before && last?.event === "submit") spans.push(submitted(now, telling, at));
  if (before && !isFinal(before) && isLeft(before, now)) spans.push(stay(before, now, telling));
  if (isFinal(now) && !(before && isFinal(before))) spans.push(life(now, telling));
  return spans;
}

function isLeft(before: Task, now: Task): boolean {
  return before.state !== now.state || (now.state === "running" && before.fence !== now.fence);
}

function submitted(task: Task, { ids, namespace }: Telling, at: Millis): Span {
  return {
    ...within(ids),
    spanId: stayId(task, namespace, "submit"),
    name: "submit",
    kind: "producer",
    start: task.createdAt,
    end: at,
    attributes: { ...whose(task), "pawl.parent": task.parent },
  };
}

/** From the moment when it came into the state that it has left now. */
function stay(before: Task, now: Task, { ids, namespace, content }: Telling): Span {
  const began = beganWith(before);
  const ended = now.history.at(-1);
  const isRun = before.state === "running";
  const event = ended?.event ?? "";
  const isSilent = isRun && SILENT.has(event);
  const error = "error" in now ? now.error : now.lastError;
  const isFailed = isRun && (isSilent || FAILED.has(event));
  const type = isSilent ? "fell_silent" : (error?.code ?? "failed");
  return {
    ...within(ids),
    spanId: isRun ? executionId(before, namespace) : stayId(before, namespace, began?.stamp ?? ""),
    name: isRun ? `${NAMES.running} ${before.agent}` : NAMES[before.state],
    kind: isRun ? "consumer" : "internal",
    start: began?.at ?? before.updatedAt,
    end: now.updatedAt,
    attributes: {
      ...whose(before),
      "pawl.ended_by": event,
      "pawl.state": now.state,
      ...(isRun && run(before, now)),
      ...(isSilent && { "pawl.silent": true }),
      ...(event === "takeover" && { "pawl.taken_over_by": ended?.by }),
      ...(before.state === "waiting" && { "pawl.waiting_for": before.waitingFor }),
      ...(before.state === "in_doubt" && { "pawl.effect": before.effect }),
    },
    ...(isFailed && {
      error: { type, ...(content && !isSilent && error && { message: error.message.slice(0, 500) }) },
    }),
  };
}

function run(before: Task & { state: "running" }, now: Task): Record<string, SpanValue | undefined> {
  const spent = minus(now.spent, before.spent);
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": before.agent,
    "gen_ai.usage.input_tokens": spent.inputTokens,
    "gen_ai.usage.output_tokens": spent.outputTokens,
    "pawl.usd": spent.usd,
    "pawl.saved_usd": minus(now.saved, before.saved).usd,
    "pawl.fence": before.fence,
    "pawl.attempt": before.attempts + 1,
    "pawl.runner": before.runner,
    "messaging.system": "nats",
    "messaging.destination.name": before.queue,
    "messaging.message.id": String(before.seq),
  };
}

/** The write with which its stay began, unless its history has forgotten it. */
function beganWith({ history, state, fence }: Task): HistoryEntry | undefined {
  const isSame = (one: HistoryEntry) => one.state === state && (state !== "running" || one.fence === fence);
  return history[history.findLastIndex((one) => !isSame(one)) + 1];
}

/** All of a task, from its submit, or its redrive, to its end. */
function life(task: Task, { ids, namespace, content }: Telling): Span {
  const before = livesBefore(task);
  const redriven = task.history.findLast(({ event }) => event === "redrive") ?? task.history[0];
  const error = task.state === "failed" && task.error;
  return {
    traceId: ids.traceId,
    spanId: ids.life,
    ...(ids.parentId !== undefined && { parentId: ids.parentId }),
    name: `task ${task.agent}`,
    kind: "internal",
    start: before > 0 ? (redriven?.at ?? task.updatedAt) : task.createdAt,
    end: task.updatedAt,
    attributes: {
      ...whose(task),
      "pawl.state": task.state,
      "pawl.executions": task.executions,
      "pawl.attempts": task.attempts,
      "pawl.redrives": before,
      "pawl.turns": task.spent.turns,
      "gen_ai.usage.input_tokens": task.spent.inputTokens,
      "gen_ai.usage.output_tokens": task.spent.outputTokens,
      "pawl.usd": task.spent.usd,
      "pawl.saved_usd": task.saved.usd,
    },
    ...(error && {
      error: { type: error.code, ...(content && { message: error.message.slice(0, 500) }) },
    }),
    ...(before > 0 && {
      links: [{ traceId: ids.traceId, spanId: lifeId(task, namespace, before - 1) }],
    }),
  };
}

/** From the message's arrival until its task's handler may start: after a holder that fell silent, its lease is waited out. */
export function claimSpan(task: Task & { state: "running" }, since: Millis, ids: Ids, at: Millis): Span {
  const how = task.history.findLast(
    ({ event, fence }) =>
      fence === task.fence && (event === "claim" || event === "takeover" || event === "adopt"),
  );
  return {
    ...within(ids),
    spanId: freshSpanId(),
    name: "claim",
    kind: "internal",
    start: since,
    end: at,
    attributes: {
      ...whose(task),
      "pawl.claim": how?.event ?? "claim",
      "pawl.fence": task.fence,
      "pawl.runner": task.runner,
    },
  };
}

function within({ traceId, life: parentId }: Ids) {
  return { traceId, parentId };
}

export function whose({ id, agent }: Task): Record<string, SpanValue> {
  return { "pawl.task": id, "pawl.agent": agent };
}
