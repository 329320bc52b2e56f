import type { Request } from "../context.ts";

/** A form as browsers send it. The body is kept: who comes next can read it again. */
export async function formFields(c: Request): Promise<URLSearchParams> {
  return new URLSearchParams(await c.req.text());
}
