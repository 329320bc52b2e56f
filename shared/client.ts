/** The one module that callers of the API import: pages, servers, Workers. It needs `fetch`, and nothing else. */
export {
  type AgentName,
  type Client,
  createClient,
  type InputFor,
  type ResultFor,
  type SubmitOptions,
  type SubmittedTask,
} from "./client/client.ts";
export type { ClientOptions } from "./client/connection.ts";
export type { EventOptions } from "./client/events.ts";
export type {
  AgentStatus,
  AuditEntry,
  AuditFilter,
  DeadLetterFilter,
  Health,
  Lists,
  Pause,
  PauseChange,
  Several,
  SeveralOptions,
  TaskFilter,
} from "./client/lists.ts";
export type { List, Page } from "./client/pages.ts";
export { type ClientCode, NoResult, Problem } from "./client/problem.ts";
export type { CallOptions } from "./client/request.ts";
export type { ResultOptions } from "./client/result.ts";
export type {
  Delta,
  Failure,
  JournalEntry,
  State,
  Task,
  TaskEvent,
  TaskFields,
  TaskSummary,
  Transition,
} from "./client/task.ts";
export type {
  AnswerOptions,
  EarlyOptions,
  Journal,
  Logs,
  Operated,
  RedriveOptions,
  Resolution,
  ResolveOptions,
  TaskHandle,
} from "./client/tasks.ts";
