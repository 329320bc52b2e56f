import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type Env, need, type Request, type WebAgent } from "../authenticate.ts";
import { addAssets } from "../frame/assets.ts";
import { fields } from "../frame/fields.ts";
import { guardHeaders } from "../frame/headers.ts";
import { type Status, show, showWrong } from "../frame/layout.ts";
import { loginForm } from "../frame/login.ts";
import { endSession, isFormKey, isOwnForm, sessionToken, startSession } from "../frame/session.ts";
import { failed } from "../problem.ts";
import type { Admit } from "../validate.ts";
import { addActions } from "./actions.ts";
import { addLivePages } from "./live.ts";
import { addOverview } from "./overview.ts";
import { addReports } from "./reports.ts";
import { addTaskPage } from "./task.ts";
import { addTaskLists } from "./tasks.ts";

const LARGEST_FORM = 64 * 1024;

/** The dashboard: pages that the server writes. What a token may see and do is as in the API, by the same functions. */
export function addPages(app: Hono<Env>, agents: readonly WebAgent[], admit: Admit): void {
  app.get("/", (c) => {
    guardHeaders(c);
    return c.redirect("/ui");
  });
  addAssets(app);
  const ui = new Hono<Env>();
  ui.onError(async (error, c) => {
    const answer = failed(error, c.env.log, c.get("token") ? "whole" : "kind");
    const { detail } = (await answer.json()) as { detail: string };
    const wait = answer.headers.get("retry-after");
    if (wait !== null) c.header("retry-after", wait);
    const title = answer.status === 404 ? "Not found" : answer.status < 500 ? "Not done" : "Out of order";
    return showWrong(c, answer.status as Status, title, detail);
  });

  ui.use(async (c, next) => {
    guardHeaders(c);
    c.header("cache-control", "no-store");
    await next();
  });
  ui.on("POST", "*", async (c, next) => {
    if (!isOwnForm(c))
      return showWrong(c, 403, "Not done", "The form was sent from another site, so nothing was done.");
    const onError = () => showWrong(c, 413, "Not done", `The form is over ${LARGEST_FORM} bytes.`);
    return bodyLimit({ maxSize: LARGEST_FORM, onError })(c, next);
  });

  ui.get("/login", (c) => show(c, { title: "Sign in", main: loginForm() }));
  ui.post("/login", async (c) => {
    const text = (await fields(c)).get("token")?.trim();
    const again = (why: string, status: Status) =>
      show(c, { title: "Sign in", main: loginForm(why), status, says: why });
    const admitted = await admit(text, c.env);
    if (admitted.kind === "slower") return tooMany(c, admitted.seconds);
    if (admitted.kind === "refused")
      return again("This is no token that is known here, or it was revoked.", 401);
    if (!admitted.token.scopes.includes("read"))
      return again("The token lacks the scope read, so there is nothing it could look at.", 403);
    startSession(c, text as string);
    return c.redirect("/ui", 303);
  });

  ui.use(async (c, next) => {
    const text = sessionToken(c);
    const admitted = await admit(text, c.env);
    if (admitted.kind === "slower") return tooMany(c, admitted.seconds);
    if (admitted.kind === "refused") {
      if (text !== undefined) endSession(c);
      return c.redirect("/ui/login", 303);
    }
    c.set("deps", admitted.deps);
    c.set("token", admitted.token);
    need(admitted.token, "read");
    await next();
  });
  ui.on("POST", "*", async (c, next) => {
    if (!(await isFormKey((await fields(c)).get("key"), sessionToken(c) ?? "")))
      return showWrong(c, 403, "Not done", "The form is not of this session. Load the page again.");
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
  ui.all("*", (c) => showWrong(c, 404, "Not found", "There is no such page."));
  app.route("/ui", ui);
}

function tooMany(c: Request, seconds: number): Promise<Response> {
  c.header("retry-after", String(seconds));
  return showWrong(c, 429, "Too many requests", `Try again in ${seconds} s.`);
}
