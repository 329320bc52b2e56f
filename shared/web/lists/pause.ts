import type { Hono } from "hono";
import { html } from "hono/html";
import { pauseAgent, resumeAgent } from "../../audit/operations.ts";
import { type Pause, WHY_LIMIT } from "../../pause/pause.ts";
import { isThere } from "../api/pause.ts";
import { bodies } from "../api/schemas.ts";
import { requireScope } from "../authorize.ts";
import type { Env, Request, WebAgent } from "../context.ts";
import { formFields } from "../frame/fields.ts";
import { renderError } from "../frame/layout.ts";
import { type Html, line, time } from "../frame/text.ts";
import { validate } from "../validate.ts";

const path = (name: string) => `/ui/agents/${encodeURIComponent(name)}`;

export function pauseBanner({ at, by, why }: Pause): Html {
  return html`<section class="panel" id="paused" aria-label="Paused"><p><strong>Paused</strong> since ${time(at)} by ${line(by)}${why !== undefined && html`: ${line(why, WHY_LIMIT)}`}</p>
<p class="note">Nothing new of it begins. What runs goes on; the rest waits in its queues.</p></section>`;
}

/** The button that an operator finds on an agent's page. */
export function pauseForm(name: string, isPaused: boolean, key: string): Html {
  const form = (verb: string, content: Html) =>
    html`<form id="${verb}-form" method="post" action="${path(name)}/${verb}"><input type="hidden" name="key" value="${key}">${content}</form>`;
  if (isPaused)
    return html`<section class="panel" aria-label="Resuming">${form("resume", html`<div class="buttons"><button id="resume" class="primary">Resume</button></div>`)}</section>`;
  return html`<details id="pause-it" class="folded"><summary>Pause this agent</summary><p>Nothing new of it begins, within five seconds. What runs goes on; what comes waits in its queues.</p>${form(
    "pause",
    html`<label for="why">Why (optional)</label>
<textarea id="why" name="why" maxlength="${WHY_LIMIT}" rows="2"></textarea>
<div class="buttons"><button id="pause" class="danger">Pause</button></div>`,
  )}</details>`;
}

/** As the page of such an agent answers. */
export const notThere = (c: Request, name: string) =>
  renderError(c, 404, "Not found", `There is no agent ${JSON.stringify(name.slice(0, 63))}.`);

const DONE = {
  paused: "It is paused.",
  "paused-before": "It was paused already: it stays as it was.",
  resumed: "It goes on.",
  "resumed-before": "It was not paused.",
} as const;

/** One of the sentences above, never text from the address itself. */
export function pauseNotice(done: string | undefined): string | undefined {
  return Object.hasOwn(DONE, done ?? "") ? DONE[done as keyof typeof DONE] : undefined;
}

/** What the form does: the same as the API's operations. */
export function addPauseForms(ui: Hono<Env>, agents: readonly WebAgent[]): void {
  ui.post("/agents/:name/pause", async (c) => {
    requireScope(c.var.token, "operate");
    const name = c.req.param("name");
    if (!isThere(c, agents, name)) return notThere(c, name);
    const why = (await formFields(c)).get("why")?.trim();
    const said = validate(bodies.pause, why ? { why } : {}, "The form");
    const { before } = await pauseAgent(c.var.deps, name, said.why);
    return c.redirect(`${path(name)}?done=paused${before ? "-before" : ""}`, 303);
  });
  ui.post("/agents/:name/resume", async (c) => {
    requireScope(c.var.token, "operate");
    const name = c.req.param("name");
    if (!isThere(c, agents, name)) return notThere(c, name);
    const { before } = await resumeAgent(c.var.deps, name);
    return c.redirect(`${path(name)}?done=resumed${before ? "" : "-before"}`, 303);
  });
}
