import type { Hono } from "hono";
import { html } from "hono/html";
import { cancel, redrive } from "../../audit/operations.ts";
import { isPawlError, messageOf, PawlError } from "../../errors/errors.ts";
import { isFinal } from "../../task/table.ts";
import { requireScope, taskFor } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import { formFields } from "../frame/fields.ts";
import { renderPage } from "../frame/layout.ts";
import { pageAt } from "../frame/session.ts";
import { type Html, heads, line, table, taskPath } from "../frame/text.ts";

/** The form that the boxes of a list belong to. */
export const FORM = "several";
/** Tasks that one form may name: a page of a list. */
const MOST = 50;

interface Verb {
  /** "Cancel 3 tasks" */
  readonly name: string;
  readonly meaning: string;
  readonly done: string;
  act(c: Request, id: string, question: string): Promise<unknown>;
}

const VERBS: Readonly<Record<string, Verb>> = {
  cancel: {
    name: "Cancel",
    meaning: "They end where they are, and those that run are asked to stop. What they have done stays done.",
    done: "cancelled, or asked to stop",
    act: async ({ var: seen }, id) => {
      const task = await taskFor(seen, id);
      if (isFinal(task)) throw new PawlError("illegal_transition", `It is ${task.state} by now`);
      // Whether the effect happened would stay unknown, which nobody is asked here.
      if (task.state === "in_doubt")
        throw new PawlError("illegal_transition", "An effect of it is in doubt: see its own page");
      return cancel(seen.deps, id);
    },
  },
  redrive: {
    name: "Try again",
    meaning: "Each goes on where its journal ends: what is stored there is not done again.",
    done: "started again",
    act: async ({ var: seen }, id, question) => {
      await taskFor(seen, id);
      return redrive(seen.deps, id, { question });
    },
  },
};

/** Below a list: what can be done to the tasks that were chosen. */
export function bulkButtons(isFailed: boolean, key: string, back: string): Html {
  const verb = isFailed ? "redrive" : "cancel";
  return html`<form id="${FORM}" class="several" method="post" action="/ui/tasks/several">
<input type="hidden" name="key" value="${key}"><input type="hidden" name="back" value="${back}">
<button id="several-${verb}" name="verb" value="${verb}">${VERBS[verb]?.name} those chosen…</button></form>`;
}

/** What is done to several tasks at once: asked once more, then done one by one, each with its own answer. */
export function addBulk(ui: Hono<Env>): void {
  ui.post("/tasks/several", async (c) => {
    requireScope(c.var.token, "operate");
    const form = await formFields(c);
    const verb = Object.hasOwn(VERBS, form.get("verb") ?? "") ? VERBS[form.get("verb") ?? ""] : undefined;
    if (!verb) throw new PawlError("input_invalid", "The form does not say what to do");
    const chosen = [...new Set(form.getAll("task"))].slice(0, MOST);
    const back = pageAt(form.get("back"));
    if (chosen.length === 0)
      throw new PawlError("input_invalid", "No task was chosen. Tick the boxes of those that are meant");
    if (form.get("sure") !== "yes") return ask(c, { verb, chosen, back, form });
    return done(c, verb, await all(c, verb, chosen), back);
  });
}

interface Asked {
  readonly verb: Verb;
  readonly chosen: readonly string[];
  readonly back: string;
  readonly form: URLSearchParams;
}

function ask(c: Request, { verb, chosen, back, form }: Asked): Promise<Response> {
  const many = `${chosen.length} task${chosen.length === 1 ? "" : "s"}`;
  const fields = [
    ["key", form.get("key")],
    ["verb", form.get("verb")],
    ["back", back],
    ["sure", "yes"],
  ];
  const main = html`<h1>${verb.name}: ${many}?</h1>
<p>${verb.meaning}</p>
<ul>${chosen.map((one) => html`<li><code>${line(idOf(one), 128)}</code></li>`)}</ul>
<form method="post" action="/ui/tasks/several">${[...fields, ...chosen.map((one) => ["task", one])].map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}
<div class="buttons"><button id="sure" class="primary">${verb.name}: ${many}</button> <a href="${back}">Back</a></div></form>`;
  return renderPage(c, { title: `${verb.name}?`, main });
}

interface Outcome {
  readonly id: string;
  /** Why nothing was done. */
  readonly why?: string;
}

/** One after the other: a list of fifty is no storm. */
async function all(c: Request, verb: Verb, chosen: readonly string[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const one of chosen) {
    const id = idOf(one);
    try {
      await verb.act(c, id, one.slice(id.length + 1));
      outcomes.push({ id });
    } catch (error) {
      const isMoved = isPawlError(error, "question_moved");
      outcomes.push({ id, why: isMoved ? "It has moved on since the list was made" : messageOf(error) });
    }
  }
  return outcomes;
}

function done(c: Request, verb: Verb, outcomes: readonly Outcome[], back: string): Promise<Response> {
  const failed = outcomes.filter(({ why }) => why !== undefined);
  const count = outcomes.length - failed.length;
  const rows = outcomes.map(
    ({ id, why }) =>
      html`<tr><th scope="row"><a href="${taskPath(id)}"><code>${line(id, 128)}</code></a></th><td class="wrap">${why === undefined ? verb.done : `not done: ${line(why, 300)}`}</td></tr>`,
  );
  const says = `${count} of ${outcomes.length} ${verb.done}`;
  const main = html`<h1>${says}</h1>${table("outcomes", says, heads("Task|What came of it"), rows)}
<p class="paging"><a href="${back}">Back to the list</a></p>`;
  return renderPage(c, { title: says, main });
}

/** A box says the task's id, and what it asked when the list was made. */
const idOf = (one: string): string => one.split(" ", 1)[0] ?? "";
