import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Authenticate } from "../authenticate.ts";
import { hasScope, requireScope } from "../authorize.ts";
import type { Env, Request, WebAgent } from "../context.ts";
import { addAssets } from "../frame/assets.ts";
import { formFields } from "../frame/fields.ts";
import { securityHeaders } from "../frame/headers.ts";
import { renderError, renderPage, type Status } from "../frame/layout.ts";
import { loginForm } from "../frame/login.ts";
import { endSession, isFormKey, isOwnForm, sessionToken, startSession } from "../frame/session.ts";
import { problemOf } from "../problem.ts";
import { addActions } from "./actions.ts";
import { addLivePages } from "./live.ts";
import { addOverview } from "./overview.ts";
import { addReports } from "./reports.ts";
import { addTaskPage } from "./task.ts";
import { addTaskLists } from "./tasks.ts";

const LARGEST_FORM = 64 * 1024;

/** The dashboard: pages that the server writes. What a token may see and do is as in the API, by the same functions. */
export function addPages(app: Hono<Env>, agents: readonly WebAgent[], authenticate: Authenticate): void {
  app.get("/", (c) => {
    securityHeaders(c);
    return c.redirect("/ui");
  });
  addAssets(app);
  const ui = new Hono<Env>();
  ui.onError(async (error, c) => {
    const answer = problemOf(error, c.env.log, c.get("token") ? "whole" : "kind");
    const { detail } = (await answer.json()) as { detail: string };
    const wait = answer.headers.get("retry-after");
    if (wait !== null) c.header("retry-after", wait);
    const title = answer.status === 404 ? "Not found" : answer.status < 500 ? "Not done" : "Server error";
    return renderError(c, answer.status as Status, title, detail);
  });

  ui.use(async (c, next) => {
    securityHeaders(c);
    await next();
  });
  ui.on("POST", "*", async (c, next) => {
    if (!isOwnForm(c))
      return renderError(c, 403, "Not done", "The form was sent from another site, so nothing was done.");
    const onError = () => renderError(c, 413, "Not done", `The form is over ${LARGEST_FORM} bytes.`);
    return bodyLimit({ maxSize: LARGEST_FORM, onError })(c, next);
  });

  ui.get("/login", (c) => renderPage(c, { title: "Sign in", main: loginForm() }));
  ui.post("/login", async (c) => {
    const text = (await formFields(c)).get("token")?.trim();
    const again = (why: string, status: Status) =>
      renderPage(c, { title: "Sign in", main: loginForm(why), status, says: why });
    const authenticated = await authenticate(text, c.env);
    if (authenticated.kind === "slower") return tooMany(c, authenticated.seconds);
    if (authenticated.kind === "refused") return again("This is not a valid token, or it was revoked.", 401);
    if (!hasScope(authenticated.token, "read"))
      return again("The token lacks the scope read, which the dashboard needs.", 403);
    startSession(c, text as string);
    return c.redirect("/ui", 303);
  });

  ui.use(async (c, next) => {
    const text = sessionToken(c);
    const authenticated = await authenticate(text, c.env);
    if (authenticated.kind === "slower") return tooMany(c, authenticated.seconds);
    if (authenticated.kind === "refused") {
      if (text !== undefined) endSession(c);
      return c.redirect("/ui/login", 303);
    }
    c.set("deps", authenticated.deps);
    c.set("token", authenticated.token);
    requireScope(authenticated.token, "read");
    await next();
  });
  ui.on("POST", "*", async (c, next) => {
    if (!(await isFormKey((await formFields(c)).get("key"), sessionToken(c) ?? "")))
      return renderError(c, 403, "Not done", "The form belongs to another session. Load the page again.");
    await next();
  });
  ui.post("/logout", (c) => {
    endSession(c);
    return c.redirect("/ui/login", 303);
  });

  addOverview(ui, agents);
  addTaskLists(ui, agents);
  addTaskPage(ui);
  addActions(ui);
  addReports(ui);
  addLivePages(ui);
  ui.all("*", (c) => renderError(c, 404, "Not found", "There is no such page."));
  app.route("/ui", ui);
}

function tooMany(c: Request, seconds: number): Promise<Response> {
  c.header("retry-after", String(seconds));
  return renderError(c, 429, "Too many requests", `Try again in ${seconds} s.`);
}
