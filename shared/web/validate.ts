import type * as z from "zod";
import { PawlError } from "../errors/errors.ts";
import { parseJson } from "../values/json.ts";

/** A request's body as JSON; an empty body is {}. */
export async function readBody(request: globalThis.Request): Promise<unknown> {
  const text = await request.text();
  return text === "" ? {} : parseJson(text, "The body");
}

export function validate<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.slice(0, 5).map(({ path, message }) => {
    return path.length > 0 ? `${path.map(String).join(".")}: ${message}` : message;
  });
  throw new PawlError("input_invalid", `${what} is not valid. ${issues.join("; ")}`);
}
