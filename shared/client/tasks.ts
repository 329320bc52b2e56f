import type { Json } from "../agent.ts";
import type { Connection } from "./connection.ts";
import { type EventOptions, follow } from "./events.ts";
import { askJson, type CallOptions } from "./request.ts";
import { getTask, type ResultOptions, resultOf } from "./result.ts";
import type { JournalEntry, State, Task, TaskEvent } from "./task.ts";

/** Of what a task is told. */
export interface EarlyOptions extends CallOptions {
  /** Keeps the answer until the task asks for it; else such a name is taken for a mistake: `signal_unasked`. */
  readonly early?: boolean;
}

/** Of an approval or a rejection. */
export interface AnswerOptions extends EarlyOptions {
  /** What the handler is told beside it. 2,000 characters at most. */
  readonly note?: string;
}

/** What is done again of a dead letter. Without either, all that succeeded is kept. */
export interface RedriveOptions extends CallOptions {
  /** An entry of its journal, `draft#1`: all but effects is done again from there on. */
  readonly from?: string;
  /** Everything, with a new budget. */
  readonly fromScratch?: boolean;
}

/** What became of an effect in doubt. */
export type Resolution =
  | { readonly happened: true; readonly receipt?: Json }
  | { readonly happened: false }
  | { readonly fail: true };

/** Of a resolution. */
export interface ResolveOptions extends CallOptions {
  /** Only if it is this effect that is in doubt. */
  readonly effect?: string;
}

/** What somebody did to a task, and the state it is in by now. */
export interface Operated {
  /** The task's id. */
  readonly id: string;
  /** The state that it is in now. */
  readonly state: State;
}

/** The newest entries of a journal, about a hundred. */
export interface Journal {
  /** How many older ones there are. */
  readonly before: number;
  /** The newest, in their order. */
  readonly entries: readonly JournalEntry[];
}

/** The newest lines that a task's handlers logged. */
export interface Logs {
  /** How many there have been. */
  readonly count: number;
  /** The newest, in their order, with the time and the fence of who logged them. */
  readonly lines: readonly {
    readonly at: number;
    readonly fence: number;
    readonly level: "info" | "warn" | "error";
    readonly text: string;
  }[];
}

/**
 * A task, and what can be asked of it and done to it. What changes it is sent once: where the answer is lost (`no_answer`),
 * look at the task before you send it again.
 */
export interface TaskHandle<Result = Json> {
  /** The task's id. */
  readonly id: string;
  /** The task as it is now. */
  get(options?: CallOptions): Promise<Task<Result>>;
  /** Waits until it is over: its result, or `NoResult`. */
  result(options?: ResultOptions): Promise<Result>;
  /** What happens to it, as it happens, each once, until it is over. Reconnects by itself. */
  events(options?: EventOptions): AsyncIterable<TaskEvent>;
  /** The newest entries of its journal. */
  journal(options?: CallOptions): Promise<Journal>;
  /** What its handlers logged. */
  logs(options?: CallOptions): Promise<Logs>;
  /** Approves what it asks for under this name. */
  approve(name: string, options?: AnswerOptions): Promise<Operated>;
  /** Rejects it. */
  reject(name: string, options?: AnswerOptions): Promise<Operated>;
  /** Tells it of an event that it waits for. */
  signal(name: string, value?: Json, options?: EarlyOptions): Promise<Operated>;
  /** Cancels it: at once, or within a heartbeat while it runs. */
  cancel(options?: CallOptions): Promise<Operated>;
  /** Tries a dead letter again. */
  redrive(options?: RedriveOptions): Promise<Operated>;
  /** Says what became of an effect in doubt. */
  resolve(resolution: Resolution, options?: ResolveOptions): Promise<Operated>;
}

export function taskHandle<Result>(connection: Connection, id: string): TaskHandle<Result> {
  const path = `/v1/tasks/${encodeURIComponent(id)}`;
  const read = <T>(end: string, { signal }: CallOptions): Promise<T> =>
    askJson(connection, { path: `${path}/${end}`, signal, isRepeatable: true });
  const operate = (end: string, body: object, { signal }: CallOptions): Promise<Operated> =>
    askJson(connection, { path: `${path}/${end}`, body, signal, isRepeatable: false });
  const answer = (name: string, approved: boolean, { signal, ...said }: AnswerOptions) =>
    operate(`approvals/${encodeURIComponent(name)}`, { approved, ...said }, { signal });
  return {
    id,
    get: (options) => getTask(connection, id, options),
    result: (options) => resultOf(connection, id, options),
    events: (options) => follow(connection, id, options),
    journal: (options = {}) => read("journal", options),
    logs: (options = {}) => read("logs", options),
    approve: (name, options = {}) => answer(name, true, options),
    reject: (name, options = {}) => answer(name, false, options),
    signal: (name, value, { signal, ...how } = {}) => operate("signal", { name, value, ...how }, { signal }),
    cancel: (options = {}) => operate("cancel", {}, options),
    redrive: ({ signal, ...how } = {}) => operate("redrive", how, { signal }),
    resolve: (resolution, { signal, ...which } = {}) =>
      operate("resolve", { ...resolution, ...which }, { signal }),
  };
}
