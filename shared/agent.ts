/** The one module that agents import. What is not exported here is free to change. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PawlError } from "./errors/errors.ts";
import type { Cost } from "./journal/cost.ts";
import type { Schedule } from "./task/schedule.ts";
import type { Tool } from "./tool.ts";
import { parseDuration } from "./values/duration.ts";
import type { Json, JsonObject } from "./values/json.ts";

export { Fatal, Retry, ToolError } from "./errors/errors.ts";
export { type ToolDefinition, tool } from "./tool.ts";
export type { Cost, Json, JsonObject, Tool };

export interface Limits {
  /** Longest run of one attempt, from the handler's start to its end or its next wait: "20m". "1h" by default. */
  readonly timeout?: string;
  /** Failures before the task is a dead letter. 3 by default. */
  readonly attempts?: number;
  /** How many tasks of this agent run at once, at most: each lane is a queue. 1 by default. */
  readonly lanes?: number;
  /** Delays between attempts: the first, doubling up to the longest. "1s" and "5m" by default. */
  readonly backoff?: { readonly first?: string; readonly longest?: string };
  /** The most that a task's model calls may cost, in dollars, all attempts together. None by default. */
  readonly budgetUsd?: number;
  /** How long a dispatched task may be without a runner before somebody looks whether its message is there. "1m" by default. */
  readonly dispatchTimeout?: string;
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

export interface LlmRequest {
  readonly model: string;
  /** The first message; or `messages`, as the Messages API has them. */
  readonly prompt?: string;
  readonly messages?: readonly Json[];
  readonly system?: string;
  readonly tools?: readonly Tool[];
  /** Longest answer of one turn, in tokens. 8192 by default; the budget sets it aside before each turn. */
  readonly maxTokens?: number;
  /** Turns before it is given up. 25 by default. */
  readonly maxTurns?: number;
  /** "return": take an answer that reached maxTokens as it is. "fail" by default. */
  readonly onMaxTokens?: "fail" | "return";
  /** Anything else of the Messages API: thinking, tool_choice, stop_sequences, … */
  readonly parameters?: JsonObject;
}

export interface LlmAnswer {
  readonly text: string;
  readonly stopReason: string;
  readonly content: readonly JsonObject[];
  /** The whole conversation, to go on with. */
  readonly messages: readonly Json[];
  readonly model: string;
  readonly cost: Cost;
}

/** A task that another one submitted. */
export interface Child {
  readonly id: string;
  /** Suspends until the child is over. Throws `child_failed` unless it completed. */
  result(): Promise<Json>;
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
  /** Asks a model, with tools, until it has answered. Every turn is stored, and never paid again. */
  llm(name: string, request: LlmRequest): Promise<LlmAnswer>;
  /** Suspends the task until a person approves. Throws when it is rejected, or not answered in time. */
  approval(
    name: string,
    options?: { summary?: string; timeout?: string },
  ): Promise<{ by: string; note?: string }>;
  /** Suspends the task until the event comes, however early it came. Undefined when it did not come in time. */
  waitFor<T = Json>(event: string, options?: { timeout?: string }): Promise<T | undefined>;
  /** Suspends the task for that long: "30m". */
  sleep(duration: string): Promise<void>;
  /** Submits a task of another agent: one for each key, however often this handler starts. */
  submit(agent: string, input: JsonObject, options: { key: string }): Promise<Child>;
}

export interface ScheduleDefinition {
  /** Minute, hour, day of the month, month, day of the week: "0 6 * * 1" is Monday at six. */
  readonly cron: string;
  /** Tells several of them apart; part of their tasks' ids. "main" by default. */
  readonly name?: string;
  /** "Europe/Vienna". "UTC" by default. */
  readonly timezone?: string;
  /** The tasks' input. {} by default. */
  readonly input?: JsonObject;
}

export interface AgentDefinition<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  /** Any Standard Schema (zod, valibot, arktype, …). Without one every JSON object is accepted. */
  readonly input?: Schema;
  readonly limits?: Limits;
  /** Tasks that come by themselves: one for each tick, however many dispatchers run. */
  readonly schedules?: readonly ScheduleDefinition[];
  /** Raise it when you change the calls that `run` makes, and branch on the context's `version`. 1 by default. */
  readonly version?: number;
  run(context: AgentContext<StandardSchemaV1.InferOutput<Schema>>): Promise<unknown> | unknown;
}

/** A definition, checked and completed. */
export interface Agent {
  readonly kind: "pawl.agent";
  readonly input?: StandardSchemaV1;
  readonly version: number;
  readonly schedules: readonly Schedule[];
  readonly limits: {
    readonly timeout?: number;
    readonly attempts: number;
    readonly lanes: number;
    readonly order: "loose" | "strict";
    readonly backoff: { readonly first: number; readonly longest: number };
    readonly budgetUsd?: number;
    readonly dispatchTimeout: number;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the schema checked the input; its type is the author's
  readonly run: (context: AgentContext<any>) => Promise<unknown> | unknown;
}

const MAX_LANES = 64;
/** Long for an agent with many turns, and short enough that one that hangs does not hold its lane for a day. */
const LONGEST_ATTEMPT = 3_600_000;

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
  const { input: _input, limits: _limits, run: _run, version = 1, schedules = [], ...rest } = definition;
  const [field] = Object.keys(rest);
  if (field)
    throw wrong(
      field,
      (rest as Record<string, unknown>)[field],
      "left out, or inside limits: there is no such field",
    );
  if (!Number.isInteger(version) || version < 1) throw wrong("version", version, "a whole number from 1");
  const {
    timeout,
    attempts = 3,
    lanes = 1,
    order = "loose",
    backoff,
    budgetUsd,
    dispatchTimeout,
    ...unknown
  } = definition.limits ?? {};
  const [extra] = Object.keys(unknown);
  if (extra)
    throw wrong(
      `limits.${extra}`,
      (unknown as Record<string, unknown>)[extra],
      "left out: there is no such limit",
    );
  const millis = (field: string, text: unknown, example: string): number | undefined => {
    const ms = typeof text === "string" ? parseDuration(text) : undefined;
    if (text !== undefined && !ms) throw wrong(`limits.${field}`, text, `a duration such as "${example}"`);
    return ms;
  };
  const timeoutMs = millis("timeout", timeout, "20m");
  const first = millis("backoff.first", backoff?.first, "1s") ?? 1_000;
  const longest = millis("backoff.longest", backoff?.longest, "5m") ?? Math.max(first, 300_000);
  if (longest < first)
    throw wrong("limits.backoff.longest", backoff?.longest, "no shorter than backoff.first");
  if (budgetUsd !== undefined && !(typeof budgetUsd === "number" && budgetUsd > 0))
    throw wrong("limits.budgetUsd", budgetUsd, "a number of dollars above 0");
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
    schedules: schedulesOf(schedules, wrong),
    limits: Object.freeze({
      timeout: timeoutMs ?? LONGEST_ATTEMPT,
      attempts,
      lanes,
      order,
      backoff: { first, longest },
      ...(budgetUsd !== undefined && { budgetUsd }),
      dispatchTimeout: millis("dispatchTimeout", dispatchTimeout, "1m") ?? 60_000,
    }),
    run: definition.run.bind(definition),
  });
}

function schedulesOf(
  given: unknown,
  wrong: (field: string, value: unknown, should: string) => PawlError,
): readonly Schedule[] {
  if (!Array.isArray(given)) throw wrong("schedules", given, 'a list, such as [{ cron: "0 6 * * 1" }]');
  const schedules = given.map((one: ScheduleDefinition): Schedule => {
    const { cron, name = "main", timezone = "UTC", input = {} } = one ?? {};
    if (typeof cron !== "string") throw wrong("schedules.cron", cron, 'five fields, such as "0 6 * * 1"');
    if (typeof name !== "string" || !/^[a-z0-9-]{1,32}$/.test(name))
      throw wrong("schedules.name", name, "1 to 32 of a-z 0-9 -");
    if (typeof timezone !== "string") throw wrong("schedules.timezone", timezone, '"Europe/Vienna", say');
    return { cron, name, timezone, input };
  });
  const names = schedules.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice) throw wrong("schedules.name", twice, "another one: there are two of this name");
  return schedules;
}
