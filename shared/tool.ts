import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PawlError } from "./errors/errors.ts";
import { parseDuration } from "./values/duration.ts";
import type { JsonObject } from "./values/json.ts";

/** Something that a model can ask for. Made by `tool({…})`. */
export interface Tool {
  readonly name: string;
  readonly type?: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
  readonly input: StandardSchemaV1;
  readonly inputSchema: JsonObject;
  readonly readOnly: boolean;
  readonly strict?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: as below
  readonly approve?: true | ((input: any) => boolean | Promise<boolean>);
  readonly approvalTimeout?: string;
  readonly honoursKey?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the schema checked the input; its type is the author's
  readonly run: (input: any, key: string, call: ToolCall) => unknown;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly verify?: (input: any, key: string) => unknown;
}

/** What a tool is told of the call that it does. */
export interface ToolCall {
  /** For requests, as the header of that name: they show in the task's trace. Undefined where nothing is traced. */
  readonly traceparent: string | undefined;
}

/** What a tool is: what `tool` takes. */
export interface ToolDefinition<Schema extends StandardSchemaV1, Result> {
  /** 1 to 64 of A-Z a-z 0-9 _ -. */
  readonly name: string;
  /** What the model is told of it. Not needed with a `type`. */
  readonly description?: string;
  /** Of a tool that the model knows already: "bash_20250124", "text_editor_20250728", "memory_20250818". `run` does what it asks. */
  readonly type?: string;
  /** Anything else that the Messages API takes of a tool: cache_control, defer_loading, input_examples, … */
  readonly parameters?: JsonObject;
  /** Any Standard Schema that can say itself as JSON Schema (zod 4, valibot, arktype, …); else give `inputSchema`. */
  readonly input: Schema;
  /** The input as JSON Schema, for the model, where `input` can't say it. */
  readonly inputSchema?: JsonObject;
  /** The API holds the model to the schema: its inputs always fit. Not every schema can be held to, and there may be 20 such tools. */
  readonly strict?: boolean;
  /**
   * It only reads: run as a step, and what it throws is told to the model. `Retry` and `Fatal` are not: with these the
   * handler fails, and the turns so far are kept. Else it is an effect.
   */
  readonly readOnly?: boolean;
  /**
   * It asks first: true, or for which inputs. The task waits, without a process, until a person approves this very call; the
   * model is told if it was refused, and why.
   */
  readonly approve?: true | ((input: StandardSchemaV1.InferOutput<Schema>) => boolean | Promise<boolean>);
  /** How long a person has for it: "2d". Then the model is told that nobody approved. As long as it takes, by default. */
  readonly approvalTimeout?: string;
  /** Of an effect: the receiver does at most one thing per key, however often and however late it is asked. */
  readonly honoursKey?: boolean;
  /**
   * Does it, with the input that the schema accepted, and returns what the model is told: JSON, or `toolContent([…])`. `key` is an effect's, the same on
   * every try; "" if it only reads. To throw `ToolError` says that nothing happened, and tells the model why.
   */
  run(input: StandardSchemaV1.InferOutput<Schema>, key: string, call: ToolCall): Result | Promise<Result>;
  /**
   * Asks the receiver, after a crash, whether the effect of this key happened: what `run` would have returned, or undefined.
   * It gets the same input and key as `run`.
   */
  verify?(
    input: StandardSchemaV1.InferOutput<Schema>,
    key: string,
  ): Result | undefined | Promise<Result | undefined>;
}

/** Schemas that can say themselves as JSON Schema: https://standardschema.dev/json-schema. */
interface JsonSchemaSource {
  readonly "~standard": {
    readonly jsonSchema?: { input(options: { target: string }): Record<string, unknown> };
  };
}

/** What a schema says of itself, where it can. */
export function jsonSchemaOf(schema: StandardSchemaV1): JsonObject | undefined {
  const source = (schema as unknown as JsonSchemaSource)["~standard"].jsonSchema;
  try {
    return source?.input({ target: "draft-2020-12" }) as JsonObject | undefined;
  } catch {
    // Something in it has no JSON Schema: a custom check, a transformation.
    return undefined;
  }
}

/** Makes a tool for `llm`. Throws `agent_invalid` where a field is wrong. */
export function tool<Schema extends StandardSchemaV1, Result>(
  definition: ToolDefinition<Schema, Result>,
): Tool {
  const { name, type, description, parameters, input, readOnly = false, strict, honoursKey } = definition;
  const { run, verify, approve, approvalTimeout } = definition;
  const wrong = (what: string) => new PawlError("agent_invalid", `tool ${JSON.stringify(name)}: ${what}`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) throw wrong("its name should be 1 to 64 of A-Z a-z 0-9 _ -");
  if (typeof run !== "function") throw wrong("run should be a function");
  if (typeof input?.["~standard"]?.validate !== "function") throw wrong("input should be a Standard Schema");
  if (approve !== undefined && approve !== true && typeof approve !== "function")
    throw wrong("approve should be true, or a function of its input");
  if (approvalTimeout !== undefined && !parseDuration(approvalTimeout))
    throw wrong('approvalTimeout should be a duration such as "2d"');
  if (!type && typeof description !== "string") throw wrong("description should say what it does");
  const { inputSchema = type ? {} : jsonSchemaOf(input) } = definition;
  if (!inputSchema) throw wrong("its schema can't say itself as JSON Schema: give inputSchema");
  return Object.freeze({
    name,
    ...(type && { type }),
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
    input,
    inputSchema,
    readOnly,
    ...(strict && { strict }),
    ...(approve && { approve: approve === true ? approve : approve.bind(definition) }),
    ...(approvalTimeout !== undefined && { approvalTimeout }),
    ...(honoursKey !== undefined && { honoursKey }),
    run: run.bind(definition),
    ...(verify && { verify: verify.bind(definition) }),
  });
}

/** What a tool's `run` returns to tell the model more than JSON. Made by `toolContent([…])`. */
export class ToolContent {
  /** As the Messages API has them. */
  readonly blocks: readonly JsonObject[];
  constructor(blocks: readonly JsonObject[]) {
    this.blocks = blocks;
  }
}

/**
 * Images, documents and texts as a tool's result: `return toolContent([{ type: "image", source: { … } }])`, each block as the
 * Messages API has it.
 */
export function toolContent(blocks: readonly JsonObject[]): ToolContent {
  return new ToolContent(blocks);
}
