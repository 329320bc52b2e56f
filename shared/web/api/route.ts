import type * as z from "zod";
import type { Task } from "../../task/document.ts";
import { requireScope, taskFor } from "../authorize.ts";
import { readBody } from "../body.ts";
import type { Request, WebAgent } from "../context.ts";
import type { Scope } from "../scopes.ts";
import { validate } from "../validate.ts";
import type { InputCheck } from "./input-check.ts";

/** An agent, and how its input is checked before a task is accepted. */
export interface ApiAgent extends WebAgent {
  readonly checkInput: InputCheck;
}

/**
 * A route of the API, declared once: requests are checked by it, and the OpenAPI document and the table in docs/api.md
 * are made from it.
 */
export interface Route<
  Path extends string = string,
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  readonly method: "get" | "post";
  /** As OpenAPI writes it. A path with {id} is of a task, which has to exist and be visible to the token. */
  readonly path: Path;
  /** What the token must be allowed to do. "any": every token will do. "none": it needs no token. */
  readonly scope: Scope | "any" | "none";
  /** As the OpenAPI document says it. */
  readonly summary: string;
  /** As docs/api.md says it, in Markdown. */
  readonly docs: string;
  /** Headers that it takes, and what they are for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The schemas of what the path names beside {id}. */
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** What it is answered with when all is well, by status: JSON of this schema, or text of this media type. */
  readonly responses: Readonly<Record<number, z.ZodType | string>>;
  /** Statuses of problems, beside those that follow from its scope, path, query and body. */
  readonly problems?: readonly number[];
  handle(c: Request, asked: Asked<Path, Params, Query, Body>): Response | Promise<Response>;
}

/** What a handler is given beside the request: all that its route declares, already checked. */
export interface Asked<Path extends string, Params, Query, Body> {
  readonly agents: readonly ApiAgent[];
  readonly task: IsOfTask<Path> extends true ? Task : undefined;
  readonly params: z.infer<Params>;
  readonly query: z.infer<Query>;
  readonly body: z.infer<Body>;
}

type IsOfTask<Path extends string> = Path extends `${string}{id}${string}` ? true : false;

export const isOfTask = ({ path }: Pick<Route, "path">): boolean => path.includes("{id}");

/** A declaration, with the types of its handler's arguments inferred from its path and schemas. */
export function route<
  const Path extends string,
  Params extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodType,
>(declared: Route<Path, Params, Query, Body>): Route {
  return declared as unknown as Route;
}

/** Checks a request in this order: may the token do it, is there such a task, are the parameters and the body valid. */
export async function answer(declared: Route, c: Request, agents: readonly ApiAgent[]): Promise<Response> {
  const { scope, params, query, body } = declared;
  if (scope !== "any" && scope !== "none") requireScope(c.var.token, scope);
  const task = isOfTask(declared) ? await taskFor(c.var, c.req.param("id") ?? "") : undefined;
  const asked = {
    agents,
    task: task as undefined,
    params: params ? validate(params, c.req.param(), "The path") : {},
    query: query ? validate(query, c.req.query(), "The query") : {},
    body: body && validate(body, await readBody(c), "The body"),
  };
  return declared.handle(c, asked);
}
