import type { Scope } from "../../../shared/web/scopes.ts";
import type { Schema } from "./json-schema.ts";

type Content = Record<string, { schema: Schema }>;
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly security: { bearer: Scope[] }[];
  readonly parameters: { name: string; in: "path" | "query" | "header"; schema: Schema }[];
  readonly requestBody?: { content: Content };
  readonly responses: Record<string, { content: Content }>;
}
export interface OpenApi {
  readonly paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
  readonly components: { schemas: Record<string, Schema> };
}

export function operationsOf(document: OpenApi): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ ...one, method: method.toUpperCase(), path })),
  );
}

/** A schema that stands for itself: what it refers to is in its place. */
export function resolved(schema: Schema, document: OpenApi): Schema {
  const text = JSON.stringify(schema).replaceAll(/\{"\$ref":"#\/components\/schemas\/(\w+)"\}/g, (_, name) =>
    JSON.stringify(document.components.schemas[name as string]),
  );
  return JSON.parse(text) as Schema;
}

export const bodySchema = ({ requestBody }: Operation) => requestBody?.content["application/json"]?.schema;
