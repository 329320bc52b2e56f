import { PawlError } from "../errors/errors.ts";
import type { Usage } from "../journal/usage.ts";
import type { Json, JsonObject } from "../values/json.ts";

/** One answer of a model, as the journal keeps it. */
export interface Turn {
  readonly content: readonly JsonObject[];
  readonly stopReason: string;
  readonly usage: Usage;
  readonly model: string;
  readonly requestId?: string;
  readonly id?: string;
  /** What the tools on the model's own side ran in. */
  readonly container?: string;
  /** Of a refusal: what of it the API says. */
  readonly stopDetails?: JsonObject;
}

/** A request of the Messages API, without `stream`. `betas` go into its header. */
export type TurnRequest = JsonObject & {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: Json;
  readonly betas?: readonly string[];
};

/** What a model says in words, without what it thinks and what it asks tools. */
export function spokenIn(content: readonly object[]): string {
  return content
    .flatMap((block) =>
      "type" in block && block.type === "text" && "text" in block ? [String(block.text)] : [],
    )
    .join("");
}

/** A model that answers one turn at a time. At least once: asking again is paying again. */
export interface Model {
  /** `begun`: called once with what tells how much of its text is there, where a model answers bit by bit. */
  turn(request: TurnRequest, signal: AbortSignal, begun?: (said: () => string) => void): Promise<Turn>;
  /** How many tokens it would read. An estimate, and free. */
  count(request: TurnRequest, signal: AbortSignal): Promise<number>;
}

/** Why there was no answer. */
export class ModelError extends PawlError {
  override readonly name = "ModelError";
  /** Nothing was made, so nothing is paid. False: a stream was cut, and nobody knows. */
  readonly isFree: boolean;
  /** When the API says that asking again makes sense, in milliseconds. */
  readonly after?: number;

  constructor(
    code: "model_unavailable" | "model_invalid" | "model_context",
    message: string,
    more: { isFree: boolean; after?: number; cause?: unknown },
  ) {
    super(code, message, more.cause === undefined ? {} : { cause: more.cause });
    this.isFree = more.isFree;
    if (more.after !== undefined) this.after = more.after;
  }
}
