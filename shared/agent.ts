/** The one module that agents import. What is not exported here is free to change. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { parseDuration } from "./task/duration.ts";
import { PawlError } from "./task/errors.ts";
import type { Json, JsonObject } from "./task/json.ts";

export { Fatal, Retry } from "./task/errors.ts";
export type { Json, JsonObject };

export interface Limits {
  /** Longest run of one attempt, from the handler's start: "20m". None by default. */
  readonly timeout?: string;
  /** Failures before the task is a dead letter. 3 by default. */
  readonly attempts?: number;
  /** How many tasks of this agent run at once, at most: each lane is a queue. 1 by default. */
  readonly lanes?: number;
  /** "strict": a failing task holds its lane until it is done, so that those behind it stay in order. */
  readonly order?: "loose" | "strict";
}

/** Something done to the world outside, at most once. */
export interface Effect<Receipt> {
  /**
   * Does it, with a key that is the same on every try and every runner: send it along as an idempotency key. What it
   * returns is the receipt. To throw `Retry` or `Fatal` says that nothing happened; after any other throw nobody knows.
   */
  run(key: string): Receipt | Promise<Receipt>;
  /** Asks the receiver whether it happened: its receipt, or undefined. */
  verify?(key: string): Receipt | undefined | Promise<Receipt | undefined>;
  /** The receiver does at most one thing per key, however often and however late it is asked. */
  readonly honoursKey?: boolean;
}

export interface AgentContext<Input> {
  readonly id: string;
  readonly input: Input;
  /** 1 for the first try; failures count, crashes don't. */
  readonly attempt: number;
  /**
   * Aborts when the task is no longer this process's: lease lost, cancelled, timed out, told to stop. `aborted` and
   * `throwIfAborted()` compare clocks too, so they are right even in a process that was frozen and has just woken.
   */
  readonly signal: AbortSignal;
  /** The agent's `version` when this task's journal began: an older one belongs to a task that is under way. */
  readonly version: number;
  log(message: string): void;
  /** Runs it and stores what it returns; once stored it is never run again. Results are plain JSON up to 16 MiB. */
  step<T>(name: string, run: () => T | Promise<T>): Promise<T>;
  /** Stores the intent, runs it, stores the receipt. See `Effect` for what happens after a crash in between. */
  effect<T>(name: string, effect: Effect<T>): Promise<T>;
}

export interface AgentDefinition<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  /** Any Standard Schema (zod, valibot, arktype, …). Without one every JSON object is accepted. */
  readonly input?: Schema;
  readonly limits?: Limits;
  /** Raise it when you change the calls that `run` makes, and branch on the context's `version`. 1 by default. */
  readonly version?: number;
  run(context: AgentContext<StandardSchemaV1.InferOutput<Schema>>): Promise<unknown> | unknown;
}

/** A definition, checked and completed. */
export interface Agent {
  readonly kind: "pawl.agent";
  readonly input?: StandardSchemaV1;
  readonly version: number;
  readonly limits: {
    readonly timeout?: number;
    readonly attempts: number;
    readonly lanes: number;
    readonly order: "loose" | "strict";
  };
  // biome-ignore lint/suspicious/noExplicitAny: the schema checked the input; its type is the author's
  readonly run: (context: AgentContext<any>) => Promise<unknown> | unknown;
}

const MAX_LANES = 64;

export function defineAgent<Schema extends StandardSchemaV1<unknown, JsonObject | object>>(
  definition: AgentDefinition<Schema>,
): Agent {
  const wrong = (field: string, value: unknown, should: string) =>
    new PawlError(
      "agent_invalid",
      `${field} is ${JSON.stringify(value) ?? typeof value}; it should be ${should}`,
    );
  if (typeof definition?.run !== "function") throw wrong("run", definition?.run, "a function");
  if (definition.input !== undefined && typeof definition.input?.["~standard"]?.validate !== "function") {
    throw wrong("input", definition.input, "a Standard Schema, such as z.object({…})");
  }
  const { input: _input, limits: _limits, run: _run, version = 1, ...rest } = definition;
  const [field] = Object.keys(rest);
  if (field)
    throw wrong(
      field,
      (rest as Record<string, unknown>)[field],
      "left out, or inside limits: there is no such field",
    );
  if (!Number.isInteger(version) || version < 1) throw wrong("version", version, "a whole number from 1");
  const { timeout, attempts = 3, lanes = 1, order = "loose", ...unknown } = definition.limits ?? {};
  const [extra] = Object.keys(unknown);
  if (extra)
    throw wrong(
      `limits.${extra}`,
      (unknown as Record<string, unknown>)[extra],
      "left out: there is no such limit",
    );
  const timeoutMs = typeof timeout === "string" ? parseDuration(timeout) : undefined;
  if (timeout !== undefined && !timeoutMs) throw wrong("limits.timeout", timeout, 'a duration such as "20m"');
  if (!Number.isInteger(attempts) || attempts < 1)
    throw wrong("limits.attempts", attempts, "a whole number from 1");
  if (!Number.isInteger(lanes) || lanes < 1 || lanes > MAX_LANES) {
    throw wrong("limits.lanes", lanes, `a whole number from 1 to ${MAX_LANES}`);
  }
  if (order !== "loose" && order !== "strict") throw wrong("limits.order", order, '"loose" or "strict"');
  return Object.freeze({
    kind: "pawl.agent" as const,
    ...(definition.input && { input: definition.input }),
    version,
    limits: Object.freeze({ ...(timeoutMs && { timeout: timeoutMs }), attempts, lanes, order }),
    run: definition.run.bind(definition),
  });
}
