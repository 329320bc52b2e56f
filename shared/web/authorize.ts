import { PawlError } from "../errors/errors.ts";
import type { Task } from "../task/document.ts";
import { isTaskId } from "../task/names.ts";
import type { Env } from "./context.ts";
import { type Scope, scopes } from "./scopes.ts";
import type { Token } from "./tokens.ts";

export function hasScope(token: Token, scope: Scope): boolean {
  return token.scopes.includes(scope);
}

export function requireScope(token: Token, scope: Scope): void {
  if (!hasScope(token, scope)) throw new PawlError("scope_missing", `The token lacks the scope ${scope}`);
}

export function mayUse({ agents }: Token, agent: string): boolean {
  return !agents || agents.includes(agent);
}

/** Whether it gets to see everybody's tasks, of the agents that it is for. A token may be older than the table of scopes. */
export function seesAll(token: Token): boolean {
  return token.scopes.some((scope) => scopes[scope]?.sees === "all");
}

/** A token sees its owner's own tasks, or everybody's, of the agents that it is for. */
export function maySee(token: Token, task: Task): boolean {
  return mayUse(token, task.agent) && (seesAll(token) || task.meta?.owner === token.owner);
}

/** Another owner's task is answered like one that does not exist. */
export async function taskFor(
  { deps, token }: Pick<Env["Variables"], "deps" | "token">,
  id: string,
): Promise<Task> {
  const task = isTaskId(id) ? (await deps.store.get(id))?.task : undefined;
  if (task && maySee(token, task)) return task;
  throw new PawlError("task_unknown", `There is no task ${JSON.stringify(id.slice(0, 128))}`);
}
