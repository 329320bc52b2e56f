import type { Request } from "../context.ts";

/** Nothing is loaded from elsewhere, nothing inline runs, and nobody puts a page into a frame. */
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export function securityHeaders(c: Request, policy = POLICY): void {
  c.header("content-security-policy", policy);
  c.header("referrer-policy", "no-referrer");
}

/** For the page that shows a report in a frame. */
export const FRAMING = `${POLICY}; frame-src 'self'`;
