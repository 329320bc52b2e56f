import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Cost } from "./journal/cost.ts";
import type { McpServer } from "./mcp/mcp.ts";
import type { Tool } from "./tool.ts";
import type { Json, JsonObject } from "./values/json.ts";

/** What a model is asked. */
export interface LlmRequest<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, undefined>> {
  /** "claude-sonnet-5-5", say. With a budget its price has to be known. */
  readonly model: string;
  /** The user's first message. Give this, or `messages`. */
  readonly prompt?: string;
  /** The conversation so far, as the Messages API has it: `[...answer.messages, { role: "user", content: "Shorter." }]` goes on with one. */
  readonly messages?: readonly Json[];
  /** The system prompt: a text, or blocks as the Messages API has them. */
  readonly system?: string | readonly JsonObject[];
  /**
   * What the model may ask for. Those made by `tool({…})`, and those of `mcp({…})`, run, and what they return goes back to it; others are tools on the
   * API's own side, as it has them: `{ type: "web_search_20260318", name: "web_search", max_uses: 3 }`.
   */
  readonly tools?: readonly (Tool | McpServer | JsonObject)[];
  /** true: what is read again each turn (tools, system, the conversation so far) is cached by the API for five minutes. */
  readonly cache?: boolean;
  /**
   * What the answer should be: any Standard Schema that can say itself as JSON Schema (zod 4, valibot, arktype, …); else give
   * `outputSchema`. The model is held to it, the answer is checked, and is the answer's `output`. One that does not fit is
   * asked for again, with the reason.
   */
  readonly output?: Schema;
  /** The output as JSON Schema, for the model, where `output` can't say it. */
  readonly outputSchema?: JsonObject;
  /** How many answers may not fit `output` before it is given up: `model_output`. 3 by default. */
  readonly outputTries?: number;
  /** Longest answer of one turn, in tokens. 8192 by default; the budget sets it aside before each turn. */
  readonly maxTokens?: number;
  /** Turns before it is given up. 25 by default. */
  readonly maxTurns?: number;
  /** "return": take an answer that reached maxTokens as it is. "fail" by default. */
  readonly onMaxTokens?: "fail" | "return";
  /** false: what this conversation and its tools are asked is not kept in the journal, for people to look at. true by default. */
  readonly keepPrompts?: boolean;
  /** Anything else of the Messages API: thinking, tool_choice, stop_sequences, … `betas` become its header. */
  readonly parameters?: JsonObject;
}

/** What a model answered, when it had no more tools to ask for. */
export interface LlmAnswer<Output = undefined> {
  /** What the request's `output` made of the answer. Undefined where it has none. */
  readonly output: Output;
  /** The texts of its last turn, joined. */
  readonly text: string;
  /** Why it ended: "end_turn", "stop_sequence", or "max_tokens" where that is accepted. */
  readonly stopReason: string;
  /** All blocks of its last turn, as the Messages API gives them: text, thinking, … */
  readonly content: readonly JsonObject[];
  /** The whole conversation, to go on with. */
  readonly messages: readonly Json[];
  /** The model that answered the last turn. */
  readonly model: string;
  /** Its message's id, where the API gave one. */
  readonly id?: string;
  /** The container that tools on the API's side ran in: give it on as `parameters: { container }`. Within a conversation it is kept. */
  readonly container?: string;
  /** What all turns of the conversation cost, also those that an earlier execution paid. */
  readonly cost: Cost;
}
