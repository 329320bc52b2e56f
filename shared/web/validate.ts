import type * as z from "zod";
import { PawlError } from "../errors/errors.ts";
import { issuesText } from "../input.ts";

export function validate<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  throw new PawlError("input_invalid", `${what} is not valid. ${issuesText(checked.error.issues)}`);
}
