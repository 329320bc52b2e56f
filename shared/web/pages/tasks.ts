import type { Hono } from "hono";
import { html } from "hono/html";
import type { Millis, State, Task } from "../../task/document.ts";
import { states } from "../../task/table.ts";
import { dollars } from "../../values/dollars.ts";
import { type Env, mayUse, type WebAgent } from "../authenticate.ts";
import { show } from "../frame/layout.ts";
import {
  ago,
  badge,
  type Html,
  heads,
  line,
  number,
  stateName,
  table,
  taskPath,
  time,
} from "../frame/text.ts";
import { read } from "../read.ts";
import { queries } from "../schemas.ts";
import { list } from "../tasks.ts";

const PAGE = 50;

/** Lists of tasks, by agent and state, the last changed first. */
export function addTaskLists(ui: Hono<Env>, agents: readonly WebAgent[]): void {
  const add = (path: string, title: string, only?: State) =>
    ui.get(path, async (c) => {
      // A form sends its empty fields too.
      const given = Object.fromEntries(Object.entries(c.req.query()).filter(([, value]) => value !== ""));
      const query = read(only ? queries.deadLetters : queries.list, given, "The address");
      const { agent, cursor } = query;
      const state = only ?? (query as { state?: State }).state;
      const page = await list(c.var, { limit: PAGE, ...query, ...(state && { state }) });
      const names = agents.map(({ name }) => name).filter((name) => mayUse(c.var.token, name));
      const now = c.var.deps.clock.now();
      const next = new URLSearchParams({
        ...(agent && { agent }),
        ...(state && !only && { state }),
        ...(page.cursor && { cursor: page.cursor }),
      });
      const rows = page.tasks.map((task) => row(task, now, only === "failed"));
      const main = html`<h1>${title}</h1>
${only === "failed" && html`<p class="lead">Tasks that can't be done as they are. Each keeps its reason, its input and its journal, and can be tried again.</p>`}
<form class="filter" id="filter" method="get" action="/ui${path}">
${select("agent", "Agent", names, agent)}
${!only && select("state", "State", states, state)}
<button id="apply">Show</button></form>
${
  rows.length > 0
    ? table("tasks", title, heads(only === "failed" ? FAILED : ANY), rows)
    : html`<p class="empty">${page.cursor ? "None among those that were looked at. Older ones may be there." : "None."}</p>`
}
<p class="paging">${cursor && html`<a href="/ui${path}?${first(next)}">Newest</a>`}
${page.cursor && html`<a rel="next" href="/ui${path}?${next.toString()}">Older</a>`}</p>`;
      return show(c, { title, main, at: `/ui${path}` });
    });
  add("/tasks", "Tasks");
  add("/dead-letters", "Dead letters", "failed");
}

const ANY = "Task|State|Agent|Changed|Failures>|Spent>";
const FAILED = "Task|Reason|Agent|Failed|Failures>|Spent>";

function first(next: URLSearchParams): string {
  const query = new URLSearchParams(next);
  query.delete("cursor");
  return query.toString();
}

function row(task: Task, now: Millis, isFailed: boolean): Html {
  const { id, agent, state, updatedAt, attempts, spent } = task;
  const reason =
    task.state === "failed" && html`<code>${task.error.code}</code> ${line(task.error.message, 120)}`;
  return html`<tr id="t-${id}"><th scope="row"><a href="${taskPath(id)}"><code>${id}</code></a></th>
<td${isFailed ? html` class="wrap"` : ""}>${isFailed ? reason : badge(state)}</td><td>${agent}</td>
<td>${time(updatedAt)} <span class="note">${ago(updatedAt, now)}</span></td>
<td class="end">${number(attempts)}</td><td class="end">${dollars(spent.usd)}</td></tr>`;
}

function select(name: string, label: string, values: readonly string[], chosen: string | undefined): Html {
  const shown = (value: string) => stateName(value as State);
  return html`<div><label for="${name}">${label}</label><select id="${name}" name="${name}"><option value="">all</option>${values.map(
    (value) =>
      html`<option value="${value}"${value === chosen ? html` selected` : ""}>${shown(value)}</option>`,
  )}</select></div>`;
}
