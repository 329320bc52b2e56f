import type { Cost, Json, JsonObject } from "../agent.ts";
import type { ErrorCode } from "../errors/errors.ts";

/** The state of a task: docs/lifecycle.md. */
export type State =
  | "scheduled"
  | "dispatched"
  | "running"
  | "waiting"
  | "in_doubt"
  | "completed"
  | "failed"
  | "cancelled";

/** Why a task failed, or its last attempt did. */
export interface Failure {
  /** One of docs/errors.md. */
  readonly code: ErrorCode;
  /** What was wrong, in the handler's words where it threw. */
  readonly message: string;
}

/** A write to a task's document: what happened, and the state it left. */
export interface Transition {
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** `submit`, `claim`, `complete`, …: docs/lifecycle.md has all. */
  readonly event: string;
  /** The state since then. */
  readonly state: State;
  /** Grows with every claim. */
  readonly fence: number;
  /** Differs in every write. */
  readonly stamp: string;
  /** The runner, or the person, that wrote it. */
  readonly by: string;
  /** What a person said, or what was special. */
  readonly note?: string;
  /** Of a write that tells of a failure. */
  readonly error?: Failure;
}

/** What every task has, whatever its state. Times are milliseconds since 1970. */
export interface TaskFields {
  /** The task's id. */
  readonly id: string;
  /** Its agent's name. */
  readonly agent: string;
  /** What was submitted. */
  readonly input: JsonObject;
  /** Failures so far. */
  readonly attempts: number;
  /** When it was submitted. */
  readonly createdAt: number;
  /** When it last changed. */
  readonly updatedAt: number;
  /** What its model turns cost so far. */
  readonly spent: Cost;
  /** Its newest transitions, 48 at most. */
  readonly history: readonly Transition[];
  /** Who submitted it, and its labels. */
  readonly meta?: { readonly owner?: string; readonly labels?: Readonly<Record<string, string>> };
  /** The task that submitted it. */
  readonly parent?: string;
  /** Tasks of one key keep their order. */
  readonly orderingKey?: string;
  /** Why its last attempt failed. */
  readonly lastError?: Failure;
}

/** A task, whole: what every state has, and what its own state has. */
export type Task<Result = Json> = TaskFields &
  (
    | { readonly state: "scheduled"; readonly dueAt: number }
    | { readonly state: "dispatched" }
    | { readonly state: "running" }
    | {
        readonly state: "waiting";
        readonly waitingFor: readonly string[];
        readonly summary?: string;
        readonly dueAt?: number;
      }
    | { readonly state: "in_doubt"; readonly effect: string }
    | { readonly state: "completed"; readonly result: Result; readonly expiresAt: number }
    | { readonly state: "failed"; readonly error: Failure; readonly expiresAt: number }
    | { readonly state: "cancelled"; readonly expiresAt: number }
  );

/** A task in a list: without its input, result and history. */
export interface TaskSummary {
  /** The task's id. */
  readonly id: string;
  /** Its agent's name. */
  readonly agent: string;
  /** The state it is in. */
  readonly state: State;
  /** Failures so far. */
  readonly attempts: number;
  /** When it was submitted, in milliseconds since 1970. */
  readonly createdAt: number;
  /** When it last changed. */
  readonly updatedAt: number;
  /** What its model turns cost, in dollars. */
  readonly usd: number;
  /** As they were submitted. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Of a dead letter. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** An entry of a task's journal. */
export interface JournalEntry {
  /** 1, 2, 3, … */
  readonly n: number;
  /**
   * What it tells of: a step; of an effect, a turn or a wait its intent and its receipt, that it was undone, or that nobody is
   * sure; or a redrive, which forgets calls before it.
   */
  readonly kind: "step" | "intent" | "receipt" | "undone" | "unsure" | "redriven";
  /** The call: `read#1`. */
  readonly key: string;
  /** What it keeps. */
  readonly value?: Json;
  /** Of an event: the beginning of a value that is too long for it. */
  readonly cut?: string;
  /** When it was stored, in milliseconds since 1970. */
  readonly when?: number;
  /** Milliseconds that a step took. */
  readonly took?: number;
  /** What a model turn cost. */
  readonly cost?: Cost;
  /** What a model or a tool was given; bytes of the whole where the text is cut, or not kept. */
  readonly asked?: { readonly text?: string; readonly bytes?: number };
}

/**
 * More of what a model says in a turn that is under way: keep the first `at` characters of what you have of this turn, and put
 * `text` behind them. At 0 it starts over. The turn's receipt in the journal takes its place.
 */
export interface Delta {
  /** Of the claim under which it is said: grows with every takeover. */
  readonly fence: number;
  /** The turn: `draft/turn 1#1`. */
  readonly key: string;
  /** Where the text begins, in characters as JavaScript counts them. */
  readonly at: number;
  /** What was said. */
  readonly text: string;
}

/** Something that happened to a task. Its `id` says where a later `events({ after })` goes on. */
export type TaskEvent =
  | { readonly kind: "transition"; readonly id: string; readonly data: Transition }
  | { readonly kind: "journal"; readonly id: string; readonly data: JournalEntry }
  | { readonly kind: "delta"; readonly id: string; readonly data: Delta }
  | {
      readonly kind: "end";
      readonly id: string;
      readonly data: { readonly state: "completed" | "failed" | "cancelled" };
    };
