import { bodyText } from "../body.ts";
import type { Request } from "../context.ts";

/** A form as browsers send it. Hono keeps the body, so it can be read more than once. */
export async function formFields(c: Request): Promise<URLSearchParams> {
  return new URLSearchParams(await bodyText(c.req));
}
