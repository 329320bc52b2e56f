import * as z from "zod";
import { answers, problemDetails } from "./responses.ts";
import { bodies, queries } from "./schemas.ts";
import type { Scope } from "./tokens.ts";

interface Route {
  readonly method: "get" | "post";
  readonly path: string;
  /** "any": every token will do. None: it needs no token. */
  readonly scope?: Scope | "any";
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  /** Headers that it takes, and what they are for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What it is answered with: JSON of this kind, or text of another type. */
  readonly answer: z.ZodType | string;
  /** Beside those that every route has. */
  readonly statuses: readonly number[];
}

/** What a request with a token may always be answered with. */
const ALWAYS = [401, 429, 500, 503];

/** The API, as people and machines read of it. A test asks every one of these routes. */
export const routes: readonly Route[] = [
  {
    method: "get",
    path: "/health",
    summary: "Whether NATS and the store answer",
    answer: answers.health,
    statuses: [200, 503],
  },
  {
    method: "post",
    path: "/v1/tasks",
    scope: "submit",
    summary: "Submits a task: 201, or 200 where it is there already",
    headers: {
      "Idempotency-Key":
        "The same key with the same request is the same task, for as long as it is kept. 1 to 255 characters",
    },
    body: bodies.submit,
    answer: answers.submitted,
    statuses: [200, 201, 409, 413, 422],
  },
  {
    method: "get",
    path: "/v1/tasks",
    scope: "read",
    summary: "Lists tasks",
    query: queries.list,
    answer: answers.page,
    statuses: [200, 422],
  },
  {
    method: "get",
    path: "/v1/tasks/{id}",
    scope: "read",
    summary: "One task",
    answer: answers.task,
    statuses: [200, 404],
  },
  ...(["cancel", "redrive", "resolve", "signal"] as const).map(
    (verb): Route => ({
      method: "post",
      path: `/v1/tasks/{id}/${verb}`,
      scope: "operate",
      summary: `${verb[0]?.toUpperCase()}${verb.slice(1)}s a task`,
      body: bodies[verb],
      answer: answers.operated,
      statuses: [200, 404, 409, 413, 422],
    }),
  ),
  {
    method: "post",
    path: "/v1/tasks/{id}/approvals/{name}",
    scope: "operate",
    summary: "Approves or rejects what a task asks for",
    body: bodies.approval,
    answer: answers.operated,
    statuses: [200, 404, 409, 413, 422],
  },
  {
    method: "get",
    path: "/v1/tasks/{id}/events",
    scope: "read",
    summary: "What happens to a task, as server-sent events: transition, journal, end",
    headers: { "Last-Event-ID": "Goes on after this one" },
    answer: "text/event-stream",
    statuses: [200, 404],
  },
  {
    method: "get",
    path: "/metrics",
    scope: "read",
    summary: "Counters and queues, for Prometheus",
    answer: "text/plain",
    statuses: [200],
  },
  {
    method: "get",
    path: "/v1/dead-letters",
    scope: "read",
    summary: "Lists tasks that failed",
    query: queries.deadLetters,
    answer: answers.page,
    statuses: [200, 422],
  },
  {
    method: "get",
    path: "/v1/agents",
    scope: "read",
    summary: "Agents, and what is in their queues: pending, in flight, redelivered, age of the oldest",
    answer: answers.agents,
    statuses: [200],
  },
  {
    method: "get",
    path: "/v1/openapi.json",
    scope: "any",
    summary: "This document",
    answer: answers.openApi,
    statuses: [200],
  },
];

/** OpenAPI 3.1, made from what requests are really checked by. */
export function openApi(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operation(route) };
  return {
    openapi: "3.1.0",
    info: { title: "Pawl", version: "1" },
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: { Problem: schemaOf(problemDetails, "output") },
    },
    paths,
  };
}

function operation({ path, scope, summary, body, query, headers, answer, statuses }: Route): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema: schemaOf(schema as z.ZodType, "input"),
  }));
  const inHeader = Object.entries(headers ?? {}).map(([name, description]) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  }));
  const always = scope ? [...ALWAYS, ...(scope === "any" ? [] : [403])] : [];
  return {
    summary,
    security: scope ? [{ bearer: scope === "any" ? [] : [scope] }] : [],
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(body && {
      requestBody: { content: { "application/json": { schema: schemaOf(body, "input") } } },
    }),
    responses: Object.fromEntries(
      [...statuses, ...always]
        .sort()
        .map((status) => [
          status,
          status < 400 ? { description: "done", content: contentOf(answer) } : WRONG,
        ]),
    ),
  };
}

const WRONG = {
  description: "problem details",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

function contentOf(answer: z.ZodType | string): object {
  if (typeof answer === "string") return { [answer]: { schema: { type: "string" } } };
  return { "application/json": { schema: schemaOf(answer, "output") } };
}

/** All that refers to itself is "any JSON", which is {}: a reference would lead nowhere from inside of this document. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, $defs: __, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return JSON.parse(JSON.stringify(rest).replaceAll(/\{"\$ref":"#\/\$defs\/[^"]+"\}/g, "{}")) as object;
}
