/** The one module that agents import. What is not exported here is free to change. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { childNamesOf, schedulesOf, secretsOf } from "./definition.ts";
import { PawlError } from "./errors/errors.ts";
import type { Cost } from "./journal/cost.ts";
import type { LlmAnswer, LlmRequest } from "./llm.ts";
import type { Schedule } from "./task/schedule.ts";
import type { Tool } from "./tool.ts";
import { parseDuration } from "./values/duration.ts";
import type { Json, JsonObject } from "./values/json.ts";

export { Fatal, Retry, ToolError } from "./errors/errors.ts";
export { type McpDefinition, type McpServer, mcp } from "./mcp/mcp.ts";
export { publicFetch } from "./public-fetch.ts";
export { type ToolCall, ToolContent, type ToolDefinition, tool, toolContent } from "./tool.ts";
export type { Cost, Json, JsonObject, LlmAnswer, LlmRequest, Tool };

/** What a task of an agent may take. Each has a default. */
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

/** A task that another one submitted. */
export interface Child<Result = Json> {
  /** The task's id: the same however often the parent starts. */
  readonly id: string;
  /** Suspends until the child is over. Throws `child_failed` unless it completed. */
  result(): Promise<Result>;
}

/** What an agent's tasks may be given: any JSON object where it has no schema. */
export type InputOf<A extends Agent> =
  A extends Agent<infer Schema, unknown>
    ? unknown extends StandardSchemaV1.InferInput<Schema>
      ? JsonObject
      : StandardSchemaV1.InferInput<Schema>
    : never;

/** What an agent's tasks end with, as it is stored: nothing is null. */
export type ResultOf<A extends Agent> =
  A extends Agent<StandardSchemaV1, infer Result> ? (unknown extends Result ? Json : Stored<Result>) : never;

type Stored<Result> = Result extends void ? null : Result;

/** What a handler is given: its task, and the calls that are journaled. Names tell calls apart: the third `step("read")` is `read#3`. */
export interface AgentContext<Input> {
  /** The task's id. */
  readonly id: string;
  /** The task's input, as the agent's schema accepts it. */
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
  /** For requests, as the header of that name: they show in the task's trace, under the step or effect that asks for it. */
  readonly traceparent: string | undefined;
  /** Writes a line into the runner's log, with the task's id, and among the newest 100 lines that the task itself keeps. */
  log(message: string, level?: "info" | "warn" | "error"): void;
  /** Runs it and stores what it returns; once stored it is never run again. Results are plain JSON up to 16 MiB. */
  step<T>(name: string, run: () => T | Promise<T>): Promise<T>;
  /** Stores the intent, runs it, stores the receipt. See `Effect` for what happens after a crash in between. */
  effect<T>(name: string, effect: Effect<T>): Promise<T>;
  /** Asks a model, with tools, until it has answered. Every turn is stored, and never paid again. */
  llm<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, undefined>>(
    name: string,
    request: LlmRequest<Schema>,
  ): Promise<LlmAnswer<StandardSchemaV1.InferOutput<Schema>>>;
  /** Suspends the task until a person approves. Throws when it is rejected, or not answered in time. */
  approval(
    name: string,
    options?: { summary?: string; timeout?: string },
  ): Promise<{ by: string; note?: string }>;
  /** Suspends the task until the event comes, however early it came. Undefined when it did not come in time. */
  waitFor<T = Json>(event: string, options?: { timeout?: string }): Promise<T | undefined>;
  /** Suspends the task for that long: "30m". */
  sleep(duration: string): Promise<void>;
  /**
   * Submits a task of another agent: one for each key, however often this handler starts. The agent is named by a text, or
   * by `{ digest }`, its imported module under its name: then its schema checks the input here, and input and result have
   * its types. `submit<typeof digest>("digest", …)` has the types alone, of an `import type`.
   */
  submit<A extends Agent = Agent>(
    agent: string | Readonly<Record<string, A>>,
    input: InputOf<A>,
    options: { key: string },
  ): Promise<Child<ResultOf<A>>>;
}

/** When tasks come by themselves. */
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

/** What an agent is: what `defineAgent` takes. */
export interface AgentDefinition<Schema extends StandardSchemaV1 = StandardSchemaV1, Result = unknown> {
  /** Any Standard Schema (zod, valibot, arktype, …). Without one every JSON object is accepted. */
  readonly input?: Schema;
  /** What a task may take: time, attempts, dollars. */
  readonly limits?: Limits;
  /** Tasks that come by themselves: one for each tick, however many dispatchers run. */
  readonly schedules?: readonly ScheduleDefinition[];
  /**
   * Names of the variables that are this agent's secrets: ["JIRA_TOKEN"]. It reads them from `process.env`, on every
   * platform. Where one is not set, nothing is claimed; no other function is given it.
   */
  readonly secrets?: readonly string[];
  /**
   * Names of the agents whose tasks it submits: ["digest"]. Needed where agents are kept apart (PAWL_ISOLATION=accounts):
   * an agent's identity reaches its relatives, and nobody else.
   */
  readonly children?: readonly string[];
  /** Raise it when you change the calls that `run` makes, and branch on the context's `version`. 1 by default. */
  readonly version?: number;
  /** The handler. What it returns, plain JSON, is the task's result; what it throws decides what becomes of the task. */
  run(context: AgentContext<StandardSchemaV1.InferOutput<Schema>>): Promise<Result> | Result;
}

/** A definition, checked and completed. Made by `defineAgent({…})`. */
export interface Agent<Schema extends StandardSchemaV1 = StandardSchemaV1, Result = unknown> {
  readonly kind: "pawl.agent";
  readonly input?: Schema;
  readonly version: number;
  readonly schedules: readonly Schedule[];
  readonly secrets: readonly string[];
  readonly children: readonly string[];
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
  readonly run: (context: AgentContext<any>) => Promise<Result> | Result;
}

const MAX_LANES = 64;
/** Long for an agent with many turns, and short enough that one that hangs does not hold its lane for a day. */
const LONGEST_ATTEMPT = 3_600_000;

/** Makes an agent: the default export of its file, whose name is the agent's. Throws `agent_invalid` where a field is wrong. */
export function defineAgent<Schema extends StandardSchemaV1<unknown, JsonObject | object>, Result>(
  definition: AgentDefinition<Schema, Result>,
): Agent<Schema, Result> {
  const wrong = (field: string, value: unknown, should: string) =>
    new PawlError(
      "agent_invalid",
      `${field} is ${JSON.stringify(value) ?? typeof value}; it should be ${should}`,
    );
  if (typeof definition?.run !== "function") throw wrong("run", definition?.run, "a function");
  if (definition.input !== undefined && typeof definition.input?.["~standard"]?.validate !== "function") {
    throw wrong("input", definition.input, "a Standard Schema, such as z.object({…})");
  }
  const {
    input: _input,
    limits: _limits,
    run: _run,
    version = 1,
    schedules = [],
    secrets = [],
    children = [],
    ...rest
  } = definition;
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
    secrets: secretsOf(secrets, wrong),
    children: childNamesOf(children, wrong),
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
