import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { messageOf, PawlError } from "../errors/errors.ts";
import type { LlmRequest } from "../llm.ts";
import { jsonSchemaOf } from "../tool.ts";
import type { JsonObject } from "../values/json.ts";
import { wrongCall } from "./scene.ts";

const DEFAULT_TRIES = 3;

/** What an answer should be. */
export interface Wanted {
  /** For the API: `output_config.format`. */
  readonly format: JsonObject;
  /** How many answers may not fit. */
  readonly tries: number;
  check(text: string): Promise<{ readonly output: unknown } | { readonly why: string }>;
}

export function wantedOf(name: string, request: LlmRequest<StandardSchemaV1>): Wanted | undefined {
  const { output, outputSchema, outputTries: tries = DEFAULT_TRIES, onMaxTokens } = request;
  if (output === undefined) return undefined;
  if (typeof output?.["~standard"]?.validate !== "function")
    throw wrongCall("llm", name, "output to be a Standard Schema, such as z.object({…})");
  if (!Number.isInteger(tries) || tries < 1)
    throw wrongCall("llm", name, "outputTries to be a whole number from 1");
  if (onMaxTokens === "return")
    throw wrongCall("llm", name, 'no onMaxTokens: "return" beside output: half an answer fits no schema');
  const schema = outputSchema ?? jsonSchemaOf(output);
  if (!schema)
    throw wrongCall("llm", name, "outputSchema: the schema of output can't say itself as JSON Schema");
  return {
    format: { type: "json_schema", schema: closed(schema, `llm ${name}: output`) },
    tries,
    check: async (text) => {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch (error) {
        return { why: `it is no JSON: ${messageOf(error)}` };
      }
      const checked = await accepted(output, value);
      return "value" in checked ? { output: checked.value } : { why: checked.why };
    },
  };
}

/** As the API holds a model to it: objects are closed, and what it can't hold it to is said in words. */
export function closed(schema: JsonObject, what: string): JsonObject {
  const { $schema: _, ...rest } = schema;
  try {
    return transformJSONSchema(rest as never) as JsonObject;
  } catch (error) {
    throw new PawlError("call_invalid", `${what}: no model can be held to this schema: ${messageOf(error)}`);
  }
}

/** What a schema makes of a value, or what it does not like. */
export async function accepted(
  schema: StandardSchemaV1,
  given: unknown,
): Promise<{ readonly value: unknown } | { readonly why: string }> {
  const checked = await schema["~standard"].validate(given);
  if (!checked.issues) return { value: checked.value };
  const issues = checked.issues.map(({ message, path }) => {
    const at = path?.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return at ? `${at}: ${message}` : message;
  });
  return { why: issues.slice(0, 5).join("; ") };
}
