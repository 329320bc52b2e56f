import type { Context } from "hono";
import type { Accepted } from "../input.ts";
import type { Deps } from "../ports/deps.ts";
import type { Log } from "../ports/log.ts";
import type { JsonObject } from "../values/json.ts";
import type { Charge } from "./rate-limit.ts";
import type { KnownToken } from "./tokens.ts";

/** What is known of an agent. */
export interface WebAgent {
  readonly name: string;
  readonly lanes: number;
  /** Its schema as JSON Schema, for people to read; none where it can't say itself so. */
  readonly inputSchema?: JsonObject;
  /** What surely every input keeps to that it accepts, as JSON Schema. */
  readonly inputBounds?: JsonObject;
  /** Asks its own schema. Undefined where it can't be asked. */
  readonly accepts?: (input: JsonObject) => Promise<Accepted | undefined>;
}

/** What each request is given. */
export interface Bindings {
  readonly log: Log;
  open(): Promise<Deps>;
  /** The one origin that browsers may call from. None by default. */
  readonly corsOrigin?: string;
  /** Requests that one token may make in a minute, or what costs as much. */
  readonly rateLimit?: number;
  /** Where the request came from, as the platform says: nothing that its sender can choose. */
  readonly from?: string;
  /** Keeps the connections of this request open until then: for event streams, which outlive the handler. */
  keep?(until: Promise<unknown>): void;
}

export interface Variables {
  /** What it does is done on behalf of the token's owner. */
  deps: Deps;
  token: KnownToken;
  /** Takes what the request costs beyond its coming. */
  charge: Charge;
  /** For what goes on after the request: false once the token is revoked or has expired. */
  isStillValid(): Promise<boolean>;
}

export type Env = { Bindings: Bindings; Variables: Variables };
export type Request = Context<Env>;
