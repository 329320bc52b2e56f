import type { Context } from "hono";
import type { Deps } from "../ports/deps.ts";
import type { Log } from "../ports/log.ts";
import type { JsonObject } from "../values/json.ts";
import type { Token } from "./tokens.ts";

/** What is known of an agent without its code. */
export interface WebAgent {
  readonly name: string;
  readonly lanes: number;
  /** What its input must be, as JSON Schema; none where its schema can't say. */
  readonly inputSchema?: JsonObject;
}

/** What each request is given. */
export interface Bindings {
  readonly log: Log;
  open(): Promise<Deps>;
  /** The one origin that browsers may call from. None by default. */
  readonly corsOrigin?: string;
  /** Requests that one token may make in a minute. */
  readonly rateLimit?: number;
  /** Keeps the connections of this request open until then: for event streams, which outlive the handler. */
  keep?(until: Promise<unknown>): void;
}

export type Env = { Bindings: Bindings; Variables: { deps: Deps; token: Token } };
export type Request = Context<Env>;
