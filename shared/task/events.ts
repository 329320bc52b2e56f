import type { Reached } from "../journal/entries.ts";
import type { Json } from "../values/json.ts";
import type { DuplicateLayer, Millis, SettledAs, TaskFailure } from "./document.ts";

/** What happened, with what is needed to write it down. */
export type TaskEvent =
  | { type: "dispatch" | "wake"; queue: string; note?: string }
  /** `from`: the entry of the journal that it begins from, counted from 0. */
  | { type: "redrive"; queue: string; fromScratch: boolean; from?: number; note?: string }
  /** `outcome`: what became of the message before; "lost" unless it is said. */
  | { type: "requeue"; queue: string; outcome?: "rescheduled" }
  | { type: "rollback"; dueAt: Millis; note: string }
  | { type: "published"; seq: number }
  | ({
      type: "claim" | "takeover";
      queue: string;
      seq: number;
      token: string;
      runner: string;
      via: string;
      lease: number;
    } & Looked)
  | { type: "start"; lease: number }
  | { type: "complete"; result: Json; expiresAt: Millis }
  | { type: "retry" | "hold"; error: TaskFailure; dueAt: Millis; ended: boolean }
  | ({
      type: "handOff";
      ended: boolean;
      /** Handed off before the handler began: how long the earlier holder's lease was already waited out. */
      waited?: number;
      /** See the document's. */
      needs?: number;
      /** The message has been delivered very often: the task gets another one. */
      renewed?: boolean;
      note?: string;
    } & Lingering)
  | ({ type: "sleep"; dueAt: Millis } & Lingering)
  | ({ type: "wait"; waitingFor: readonly string[]; summary?: string; dueAt?: Millis } & Lingering)
  | { type: "doubt"; effect: string; tries: number; ended: boolean }
  | { type: "fail"; error: TaskFailure; countsAttempt: boolean; ended: boolean; expiresAt: Millis }
  /** Without a sequence: it was never published. */
  | ({ type: "exhaust"; error: TaskFailure; queue: string; seq?: number; expiresAt: Millis } & Looked)
  | { type: "requestCancel" }
  | ({ type: "cancel"; ended: boolean; expiresAt: Millis } & Looked)
  | { type: "signal"; name: string; value: Json }
  | { type: "resolve"; to: "dispatched"; queue: string; answer: Json }
  | { type: "resolve"; to: "failed"; error: TaskFailure; expiresAt: Millis }
  | { type: "surplus"; queue: string; seq: number; dispatch: number; outcome: SettledAs; note?: string }
  | { type: "skip"; queue: string; seq: number }
  | { type: "publishDuplicate"; layer: DuplicateLayer }
  | { type: "accept"; note: string }
  /** Without a time: it was told. */
  | { type: "told"; againAt?: Millis };

/** Other code of the handler than what waits was told to stop, and may still run for so long. Left out: there is none. */
interface Lingering {
  lingers?: number;
}

/** How far the journal has come, where somebody looked: a holder that died could not say. */
interface Looked {
  reached?: Reached;
}

/** Who writes, when, and the value that makes the write unlike any other. */
export interface Mark {
  readonly now: Millis;
  readonly stamp: string;
  readonly by: string;
  /** There is somebody to be told of what went wrong, or waits. */
  readonly tells?: boolean;
}
