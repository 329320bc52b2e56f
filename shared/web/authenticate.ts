import type { Context } from "hono";
import { PawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Log } from "../ports/log.ts";
import type { Task } from "../task/document.ts";
import { isTaskId } from "../task/names.ts";
import type { JsonObject } from "../values/json.ts";
import type { Scope, Token } from "./tokens.ts";

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
  /** What was opened stays open until then: for answers that take their time. */
  keep?(until: Promise<unknown>): void;
}

export type Env = { Bindings: Bindings; Variables: { deps: Deps; token: Token } };
export type Request = Context<Env>;

export function need({ scopes }: Token, scope: Scope): void {
  if (!scopes.includes(scope)) throw new PawlError("scope_missing", `The token lacks the scope ${scope}`);
}

export function mayUse({ agents }: Token, agent: string): boolean {
  return !agents || agents.includes(agent);
}

/** One's own, and an operator's all, of the agents that the token is for. */
export function maySee(token: Token, task: Task): boolean {
  if (!mayUse(token, task.agent)) return false;
  return token.scopes.includes("operate") || task.meta?.owner === token.owner;
}

/** Another owner's task is as good as none. */
export async function taskFor({ deps, token }: Env["Variables"], id: string): Promise<Task> {
  const task = isTaskId(id) ? (await deps.store.get(id))?.task : undefined;
  if (task && maySee(token, task)) return task;
  throw new PawlError("task_unknown", `There is no task ${JSON.stringify(id.slice(0, 128))}`);
}
