import * as z from "zod";
import { bodies, queries } from "./schemas.ts";
import type { Scope } from "./tokens.ts";

interface Route {
  readonly method: "get" | "post";
  readonly path: string;
  readonly scope?: Scope;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly answers: readonly number[];
}

/** The API, as people and machines read of it. A test asks every one of these routes. */
export const routes: readonly Route[] = [
  { method: "get", path: "/health", summary: "Whether NATS and the store answer", answers: [200, 503] },
  {
    method: "post",
    path: "/v1/tasks",
    scope: "submit",
    summary:
      "Submits a task. With an Idempotency-Key the same request is the same task, for as long as it is kept",
    body: bodies.submit,
    answers: [200, 201, 401, 403, 409, 413, 422, 429],
  },
  {
    method: "get",
    path: "/v1/tasks",
    scope: "read",
    summary: "Lists tasks",
    query: queries.list,
    answers: [200, 401, 403, 422],
  },
  {
    method: "get",
    path: "/v1/tasks/{id}",
    scope: "read",
    summary: "One task",
    answers: [200, 401, 403, 404],
  },
  ...(["cancel", "redrive", "resolve", "signal"] as const).map(
    (verb): Route => ({
      method: "post",
      path: `/v1/tasks/{id}/${verb}`,
      scope: "operate",
      summary: `${verb[0]?.toUpperCase()}${verb.slice(1)}s a task`,
      body: bodies[verb],
      answers: [200, 401, 403, 404, 409, 422],
    }),
  ),
  {
    method: "post",
    path: "/v1/tasks/{id}/approvals/{name}",
    scope: "operate",
    summary: "Approves or rejects what a task asks for",
    body: bodies.approval,
    answers: [200, 401, 403, 404, 409, 422],
  },
  {
    method: "get",
    path: "/v1/tasks/{id}/events",
    scope: "read",
    summary: "What happens to a task, as server-sent events: transition, journal, end",
    answers: [200, 401, 403, 404],
  },
  {
    method: "get",
    path: "/metrics",
    scope: "read",
    summary: "Counters and queues, for Prometheus",
    answers: [200, 401, 403],
  },
  {
    method: "get",
    path: "/v1/dead-letters",
    scope: "read",
    summary: "Lists tasks that failed",
    query: queries.deadLetters,
    answers: [200, 401, 403, 422],
  },
  {
    method: "get",
    path: "/v1/agents",
    scope: "read",
    summary: "Agents, and what is in their queues: pending, in flight, redelivered, age of the oldest",
    answers: [200, 401, 403],
  },
];

/** OpenAPI 3.1, made from what requests are really checked by. */
export function openApi(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { method, path, scope, summary, body, query, answers } of routes) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string" },
    }));
    const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
      name,
      in: "query",
      schema: z.toJSONSchema(schema as z.ZodType, { io: "input", unrepresentable: "any" }),
    }));
    const operation = {
      summary,
      ...(scope ? { security: [{ bearer: [scope] }] } : { security: [] }),
      parameters: [...inPath, ...inQuery],
      ...(body && {
        requestBody: {
          content: {
            "application/json": { schema: z.toJSONSchema(body, { io: "input", unrepresentable: "any" }) },
          },
        },
      }),
      responses: Object.fromEntries(
        answers.map((status) => [status, { description: status < 400 ? "done" : "problem details" }]),
      ),
    };
    paths[path] = { ...paths[path], [method]: operation };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Pawl", version: "1" },
    components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    paths,
  };
}
