import { html } from "hono/html";
import type { Task } from "../../task/document.ts";
import { isFound } from "../api/search.ts";
import { listTasks } from "../api/tasks.ts";
import type { Request } from "../context.ts";
import { renderPage } from "../frame/layout.ts";
import { pageAt } from "../frame/session.ts";
import { line, number } from "../frame/text.ts";
import { type Asked, filterAt } from "./asked.ts";
import { actOn, againForm, boxOf, outcomeTable, tasksOf, type Verb } from "./verbs.ts";

/** Done by one request: what a function may take its time for, and a person may still watch. */
const AT_ONCE = 50;
/** Counted before anything is done. */
const COUNTED = 1_000;
/** Named before anything is done. */
const NAMED = 10;

/**
 * All that match what a list was asked for: counted and asked about first, then done so many at a time, the last changed
 * first. The cursor goes on from the last one, and what was done is changed by it: nothing comes twice.
 */
export async function matching(c: Request, verb: Verb, form: URLSearchParams): Promise<Response> {
  const back = pageAt(form.get("back"));
  const filter = filterAt(back);
  const until = Number(form.get("until") ?? c.var.deps.clock.now());
  // What came or changed since somebody was asked is not what they were asked about.
  const isMeant = (task: Task) => verb.isFor(task) && task.updatedAt <= until && isFound(filter)(task);
  const isSure = form.get("sure") === "yes";
  const cursor = form.get("cursor");
  const query = { ...filter, limit: isSure ? AT_ONCE : COUNTED, ...(cursor && { cursor }) };
  const page = await listTasks(c.var, query, isMeant);
  const fields = { key: form.get("key"), verb: form.get("verb"), back, sure: "yes", until: String(until) };
  const again = (button: string, more: Record<string, string | undefined> = {}) =>
    againForm(Object.entries({ ...fields, ...more }), button, html`<a href="${back}">Back to the list</a>`);
  if (!isSure) {
    const many = tasksOf(
      `${page.cursor ? "at least " : ""}${number(page.tasks.length)}`,
      page.tasks.length === 1 && !page.cursor,
    );
    const isNone = page.tasks.length === 0 && !page.cursor;
    const main = html`<h1>${verb.name}: ${many}?</h1>
<p>${saidOf(filter)} ${verb.meaning}</p>
<p>${AT_ONCE} are done at a time, the last changed first; then you go on, or stop. What comes or changes from now on is left alone.</p>
<ul>${page.tasks.slice(0, NAMED).map(({ id }) => html`<li><code>${line(id, 128)}</code></li>`)}</ul>
${page.tasks.length > NAMED && html`<p class="note">These are the first ${NAMED}.</p>`}
${isNone ? html`<p><a href="${back}">Back to the list</a></p>` : again(`${verb.name}: ${many}`)}`;
    return renderPage(c, { title: `${verb.name}?`, main });
  }
  const outcomes = await actOn(c, verb, page.tasks.map(boxOf));
  const failed = outcomes.filter(({ why }) => why !== undefined);
  const count = countIn(form, "done") + outcomes.length - failed.length;
  const left = countIn(form, "left") + failed.length;
  const says = `${number(count)} ${verb.done}${page.cursor ? " so far" : ""}${left > 0 ? `, ${number(left)} not` : ""}`;
  const main = html`<h1>${says}</h1>
${failed.length > 0 && outcomeTable(verb, failed, says)}
${
  page.cursor
    ? again("Go on", { cursor: page.cursor, done: String(count), left: String(left) })
    : html`<p>That is all.</p><p class="paging"><a href="${back}">Back to the list</a></p>`
}`;
  return renderPage(c, { title: says, main });
}

/** What was asked for, in words. */
function saidOf(filter: Asked): string {
  const words = Object.entries(filter).map(([name, value]) => `${name} ${line(String(value), 80)}`);
  return words.length > 0 ? `All of ${words.join(", ")}.` : "All that you may see.";
}

/** Of the requests before this one, as the form says it: only shown. */
function countIn(form: URLSearchParams, name: string): number {
  const count = Number(form.get(name) ?? 0);
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
}
