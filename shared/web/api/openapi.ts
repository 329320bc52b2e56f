import * as z from "zod";
import { problemDetails } from "./responses.ts";
import { isOfTask, type Route } from "./route.ts";

/** What a request with a token may always be answered with. */
const ALWAYS = [401, 429, 500, 503];

/** OpenAPI 3.1, made from what requests are really checked by. */
export function openApi(routes: readonly Route[]): object {
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

function operation(route: Route): object {
  const { path, scope, summary, params, body, query, headers, responses } = route;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: params?.shape[name] ? schemaOf(params.shape[name] as z.ZodType, "input") : { type: "string" },
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
  const done = Object.entries(responses).map(([status, content]) => [
    status,
    { description: "done", content: contentOf(content) },
  ]);
  const wrong = problemsOf(route).map((status) => [status, PROBLEM]);
  return {
    summary,
    security: scope === "none" ? [] : [{ bearer: scope === "any" ? [] : [scope] }],
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(body && {
      requestBody: { content: { "application/json": { schema: schemaOf(body, "input") } } },
    }),
    responses: Object.fromEntries([...done, ...wrong]),
  };
}

/** What can be wrong with a request follows from what is checked of it. */
function problemsOf(route: Route): number[] {
  const { scope, params, query, body, problems = [] } = route;
  return [
    ...problems,
    ...(scope === "none" ? [] : ALWAYS),
    ...(scope === "none" || scope === "any" ? [] : [403]),
    ...(isOfTask(route) ? [404] : []),
    ...(body ? [400, 413] : []),
    ...(params || query || body ? [422] : []),
  ];
}

const PROBLEM = {
  description: "problem details",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

function contentOf(response: z.ZodType | string): object {
  if (typeof response === "string") return { [response]: { schema: { type: "string" } } };
  return { "application/json": { schema: schemaOf(response, "output") } };
}

/** A schema that refers to itself is "any JSON", which is {}: its references would lead nowhere inside of this document. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, $defs: __, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return JSON.parse(JSON.stringify(rest).replaceAll(/\{"\$ref":"#\/\$defs\/[^"]+"\}/g, "{}")) as object;
}
