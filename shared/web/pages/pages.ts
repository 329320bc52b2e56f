import { Hono } from "hono";
import type { Authenticate } from "../authenticate.ts";
import { bodyOfAtMost } from "../body.ts";
import type { Env, WebAgent } from "../context.ts";
import { addAssets } from "../frame/assets.ts";
import { formFields } from "../frame/fields.ts";
import { securityHeaders } from "../frame/headers.ts";
import { renderError, type Status } from "../frame/layout.ts";
import { endSession, isFormKey, isOwnForm, sessionToken } from "../frame/session.ts";
import { addGuard, addSignIn } from "../frame/sign-in.ts";
import { addAgentPage } from "../lists/agent.ts";
import { addBulk } from "../lists/bulk.ts";
import { addOverview } from "../lists/overview.ts";
import { addTaskLists } from "../lists/tasks.ts";
import { problemOf } from "../problem.ts";
import { addActions } from "./actions.ts";
import { addLivePages } from "./live.ts";
import { addReports } from "./reports.ts";
import { addTaskPage } from "./task.ts";

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
    return bodyOfAtMost(LARGEST_FORM, onError)(c, next);
  });

  addSignIn(ui, authenticate);
  addGuard(ui, authenticate);
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
  addBulk(ui);
  addAgentPage(ui, agents);
  addTaskPage(ui);
  addActions(ui);
  addReports(ui);
  addLivePages(ui);
  ui.all("*", (c) => renderError(c, 404, "Not found", "There is no such page."));
  app.route("/ui", ui);
}
