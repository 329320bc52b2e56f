import type { Hono } from "hono";
import { html } from "hono/html";
import { type Authenticate, enter } from "../authenticate.ts";
import { hasScope, requireScope } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import { formFields } from "./fields.ts";
import { renderError, renderPage, type Status } from "./layout.ts";
import { loginForm } from "./login.ts";
import { addressOf, endSession, pageAt, sessionToken, startSession } from "./session.ts";

/** Signing in, which leads to the page that was asked for; and out. */
export function addSignIn(ui: Hono<Env>, authenticate: Authenticate): void {
  ui.get("/login", (c) =>
    renderPage(c, { title: "Sign in", main: loginForm({ next: pageAt(c.req.query("next")) }) }),
  );
  ui.post("/login", async (c) => {
    const form = await formFields(c);
    const text = form.get("token")?.trim();
    const next = pageAt(form.get("next"));
    const again = (wrong: string, status: Status) =>
      renderPage(c, { title: "Sign in", main: loginForm({ wrong, next }), status, says: wrong });
    const authenticated = await authenticate(text, c.env);
    if (authenticated.kind === "slower") return tooMany(c, authenticated.seconds);
    if (authenticated.kind === "refused") return again("This is not a valid token, or it was revoked.", 401);
    if (authenticated.kind === "expired") return again("This token has expired.", 401);
    if (!hasScope(authenticated.token, "read"))
      return again("The token lacks the scope read, which the dashboard needs.", 403);
    startSession(c, text as string);
    return c.redirect(`/ui/login/kept?next=${encodeURIComponent(next)}`, 303);
  });
  // A browser that does not keep the cookie would be led back to the sign-in for ever, without a word.
  ui.get("/login/kept", async (c) => {
    const next = pageAt(c.req.query("next"));
    if (sessionToken(c) !== undefined) return c.redirect(next, 303);
    return renderPage(c, {
      title: "Sign in",
      main: loginForm({ wrong: NOT_KEPT, next }),
      status: 403,
      says: NOT_KEPT,
    });
  });
}

const NOT_KEPT =
  "The token is valid, but the browser did not keep the session's cookie. Over plain HTTP it keeps one for localhost only: open the dashboard by HTTPS, or as http://localhost on this machine (from another one: ssh -L). Or cookies are switched off.";

/** Who is there, for every page behind the sign-in. */
export function addGuard(ui: Hono<Env>, authenticate: Authenticate): void {
  ui.use(async (c, next) => {
    const text = sessionToken(c);
    const authenticated = await authenticate(text, c.env);
    if (authenticated.kind === "slower") return tooMany(c, authenticated.seconds);
    if (authenticated.kind !== "authenticated") {
      if (text !== undefined) endSession(c);
      if (text === undefined && isLinkFromElsewhere(c)) return renderHop(c);
      return c.redirect(`/ui/login${nextOf(c)}`, 303);
    }
    enter(c, authenticated, "dashboard");
    requireScope(authenticated.token, "read");
    await next();
  });
}

/** Of a page that was asked for, and is not the first one: "?next=%2Fui%2Ftasks%2Ft-1". */
function nextOf(c: Request): string {
  const next = c.req.method === "GET" ? pageAt(addressOf(c)) : "/ui";
  return next === "/ui" ? "" : `?next=${encodeURIComponent(next)}`;
}

/** A browser keeps the cookie back from who follows a link on another site, even if they are signed in. */
const isLinkFromElsewhere = ({ req }: Request): boolean =>
  req.method === "GET" &&
  req.header("sec-fetch-mode") === "navigate" &&
  /^(cross|same)-site$/.test(req.header("sec-fetch-site") ?? "");

/** Asked for by a page of ours, the same address comes with its cookie. */
function renderHop(c: Request): Response | Promise<Response> {
  const address = pageAt(addressOf(c));
  return c.html(html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pawl</title>
<meta http-equiv="refresh" content="0;url=${address}"></head><body><p><a href="${address}">Go on</a></p></body></html>`);
}

export function tooMany(c: Request, seconds: number): Promise<Response> {
  c.header("retry-after", String(seconds));
  return renderError(c, 429, "Too many requests", `Try again in ${seconds} s.`);
}
