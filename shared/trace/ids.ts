import { countsOf } from "../task/counts.ts";
import type { Task } from "../task/document.ts";
import { sha256 } from "../values/json.ts";
import type { TraceParent } from "../values/traceparent.ts";
import { readTraceparent } from "../values/traceparent.ts";

/** What every process must name in the same way, without having heard of the others. */
export interface Ids {
  readonly traceId: string;
  readonly sampled: boolean;
  /** The submitter's span. */
  readonly parentId?: string;
  /** Of the task from its submit, or its newest redrive, to its end. */
  readonly life: string;
}

/** Which tasks are told of, where their submitter does not say: by their trace's id, so that all processes choose alike. */
export interface Sampling {
  readonly ratio: number;
  /** What the submitter says of its own trace counts. */
  readonly byParent: boolean;
}

/** A task is one trace: its submitter's, or one that follows from the task's name and birth. */
export function idsOf(task: Task, namespace: string, sampling: Sampling): Ids {
  const given = readTraceparent(task.meta?.traceparent);
  const own = `${namespace}/${task.id}/${task.createdAt}`;
  const traceId = given?.traceId ?? hex(`trace/${own}`, 32);
  return {
    traceId,
    sampled: isSampled(traceId, given, sampling),
    ...(given && { parentId: given.spanId }),
    life: lifeId(task, namespace, livesBefore(task)),
  };
}

function isSampled(traceId: string, given: TraceParent | undefined, { ratio, byParent }: Sampling): boolean {
  if (given && byParent) return given.sampled;
  return Number.parseInt(traceId.slice(-12), 16) < ratio * 2 ** 48;
}

/** How often it had failed for good, and was redriven, before. */
export function livesBefore(task: Task): number {
  return countsOf(task).failed - (task.state === "failed" ? 1 : 0);
}

/** A trace may hold many tasks, so each span's id says whose it is. */
const spanId = ({ id, createdAt }: Task, namespace: string, what: string): string =>
  hex(`${what}/${namespace}/${id}/${createdAt}`, 16);

export const lifeId = (task: Task, namespace: string, life: number): string =>
  spanId(task, namespace, `life ${life}`);

/** Of what was claimed under this fence: what a holder does before it dies names it, and its successor tells of it. */
export const executionId = (task: Task, namespace: string): string =>
  spanId(task, namespace, `fence ${task.fence}`);

/** Of a stay in a state, by the write with which it began. */
export const stayId = (task: Task, namespace: string, stamp: string): string =>
  spanId(task, namespace, `stay ${stamp}`);

function hex(text: string, digits: number): string {
  return sha256(text).slice(0, digits);
}

/** Of what nobody else has to name. */
export function freshSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
