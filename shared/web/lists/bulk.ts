import type { Hono } from "hono";
import { html } from "hono/html";
import { PawlError } from "../../errors/errors.ts";
import type { Task } from "../../task/document.ts";
import { requireScope } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import { formFields } from "../frame/fields.ts";
import { renderPage } from "../frame/layout.ts";
import { pageAt } from "../frame/session.ts";
import { type Html, line } from "../frame/text.ts";
import { matching } from "./matching.ts";
import { actOn, againForm, boxOf, idOf, outcomeTable, tasksOf, type Verb, verbNamed } from "./verbs.ts";

/** The form that the boxes of a list belong to. */
export const FORM = "several";
/** Tasks that one form may name: a page of a list. */
const MOST = 50;

export interface Below {
  /** Those that the list shows. */
  readonly tasks: readonly Task[];
  readonly isFailed: boolean;
  readonly key: string;
  readonly back: string;
}

/** Below a list: what can be done to the tasks that were chosen, to all that it shows, or to all that match what was asked. */
export function bulkButtons({ tasks, isFailed, key, back }: Below): Html {
  const verb = isFailed ? "redrive" : "cancel";
  const { name, isFor } = verbNamed(verb) as Verb;
  const shown = tasks.filter(isFor);
  const button = (which: string, of: string) =>
    html`<button id="several-${verb}-${which}" name="verb" value="${verb} ${which}">${name} ${of}…</button>`;
  return html`<form id="${FORM}" class="several buttons" method="post" action="/ui/tasks/several">
<input type="hidden" name="key" value="${key}"><input type="hidden" name="back" value="${back}">
${shown.map((task) => html`<input type="hidden" name="shown" value="${boxOf(task)}">`)}
${button("chosen", "those chosen")}
${shown.length > 0 && shown.length <= MOST && button("shown", `all ${shown.length} on this page`)}
${button("matching", "all that match")}</form>`;
}

/** What is done to several tasks at once: asked once more, then done one by one, each with its own answer. */
export function addBulk(ui: Hono<Env>): void {
  ui.post("/tasks/several", async (c) => {
    requireScope(c.var.token, "operate");
    const form = await formFields(c);
    const [name = "", which = "chosen"] = (form.get("verb") ?? "").split(" ");
    const verb = verbNamed(name);
    if (!verb) throw new PawlError("input_invalid", "The form does not say what to do");
    if (which === "matching") return matching(c, verb, form);
    const chosen = [...new Set(form.getAll(which === "shown" ? "shown" : "task"))].slice(0, MOST);
    const back = pageAt(form.get("back"));
    if (chosen.length === 0)
      throw new PawlError("input_invalid", "No task was chosen. Tick the boxes of those that are meant");
    if (form.get("sure") !== "yes") return ask(c, { verb, name, chosen, back, form });
    return done(c, verb, chosen, back);
  });
}

interface Asked {
  readonly verb: Verb;
  readonly name: string;
  readonly chosen: readonly string[];
  readonly back: string;
  readonly form: URLSearchParams;
}

function ask(c: Request, { verb, name, chosen, back, form }: Asked): Promise<Response> {
  const many = tasksOf(String(chosen.length));
  const fields = [
    ["key", form.get("key")],
    ["verb", name],
    ["back", back],
    ["sure", "yes"],
    ...chosen.map((one) => ["task", one] as const),
  ] as const;
  const main = html`<h1>${verb.name}: ${many}?</h1>
<p>${verb.meaning}</p>
<ul>${chosen.map((one) => html`<li><code>${line(idOf(one), 128)}</code></li>`)}</ul>
${againForm(fields, `${verb.name}: ${many}`, html`<a href="${back}">Back</a>`)}`;
  return renderPage(c, { title: `${verb.name}?`, main });
}

async function done(c: Request, verb: Verb, chosen: readonly string[], back: string): Promise<Response> {
  const outcomes = await actOn(c, verb, chosen);
  const count = outcomes.filter(({ why }) => why === undefined).length;
  const says = `${count} of ${outcomes.length} ${verb.done}`;
  const main = html`<h1>${says}</h1>${outcomeTable(verb, outcomes, says)}
<p class="paging"><a href="${back}">Back to the list</a></p>`;
  return renderPage(c, { title: says, main });
}
