import type { Request } from "../context.ts";

/** Nothing is loaded from elsewhere, nothing inline runs, and nobody puts a page into a frame. */
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export function securityHeaders(c: Request, policy = POLICY): void {
  c.header("content-security-policy", policy);
  // Other sites learn no address of ours. With no referrer at all, our own forms would not name their origin either.
  c.header("referrer-policy", "same-origin");
}

/** For the page that shows a report in a frame. */
export const FRAMING = `${POLICY}; frame-src 'self'`;
