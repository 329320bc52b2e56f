import type { Hono } from "hono";
import { html } from "hono/html";
import type { Millis, State, Task } from "../../task/document.ts";
import { isTaskId } from "../../task/names.ts";
import { isFinal, states } from "../../task/table.ts";
import { dollars } from "../../values/dollars.ts";
import { isFound } from "../api/search.ts";
import { listTasks } from "../api/tasks.ts";
import { hasScope, maySee, mayUse, seesAll } from "../authorize.ts";
import type { Env, Request, WebAgent } from "../context.ts";
import { renderPage } from "../frame/layout.ts";
import { formKey, sessionToken } from "../frame/session.ts";
import {
  ago,
  badge,
  cell,
  type Html,
  heads,
  line,
  number,
  OWN_DOLLARS,
  stateName,
  table,
  taskPath,
  time,
} from "../frame/text.ts";
import { type Asked, askedIn, type List, lists } from "./asked.ts";
import { bulkButtons, FORM } from "./bulk.ts";
import { boxOf } from "./verbs.ts";

const PAGE = 50;

/** Lists of tasks, the last changed first: by agent, state, owner, label and error, and by a part of their id. */
export function addTaskLists(ui: Hono<Env>, agents: readonly WebAgent[]): void {
  for (const list of lists)
    ui.get(list.path, async (c) => {
      const asked = askedIn(c.req.query(), list);
      if (await isSeen(c, asked.q)) return c.redirect(taskPath(asked.q as string), 303);
      return renderList(c, list, asked, agents);
    });
}

/** A whole id leads to its task at once. */
async function isSeen({ var: { deps, token } }: Request, id: string | undefined): Promise<boolean> {
  const found = id !== undefined && isTaskId(id) ? await deps.store.get(id) : undefined;
  return found !== undefined && maySee(token, found.task);
}

async function renderList(c: Request, list: List, asked: Asked, agents: readonly WebAgent[]) {
  const { token, deps } = c.var;
  const { title, path, only } = list;
  const { q, cursor, ...query } = asked;
  const page = await listTasks(c.var, { limit: PAGE, ...query, ...(cursor && { cursor }) }, isFound(asked));
  const names = agents.map(({ name }) => name).filter((name) => mayUse(token, name));
  const now = deps.clock.now();
  const mayAct = hasScope(token, "operate");
  const rows = page.tasks.map((task) => row(task, now, only === "failed", mayAct));
  const columns = only === "failed" ? FAILED : ANY;
  const shown = new URLSearchParams(
    Object.entries({ ...asked, ...(only && { state: "" }) }).filter(([, value]) => value),
  );
  const at = (from?: string) => {
    const next = new URLSearchParams(shown);
    next.delete("cursor");
    if (from !== undefined) next.set("cursor", from);
    return `/ui${path}?${next.toString()}`;
  };
  const main = html`<h1>${title}</h1>
${only === "failed" && html`<p class="lead">Tasks that can't be done as they are. Each keeps its reason, its input and its journal, and can be tried again.</p>`}
<form class="filter" id="filter" method="get" action="/ui${path}">
${input("q", "Id or label", q, "a part of either")}
${select("agent", "Agent", names, asked.agent)}
${!only && select("state", "State", states, asked.state)}
${seesAll(token) && input("owner", "Owner", asked.owner)}
${(only || asked.error) && input("error", "Reason", asked.error, "such as fatal")}
<button id="apply">Show</button></form>
${
  rows.length > 0
    ? html`${table("tasks", title, heads(mayAct ? `|${columns}` : columns), rows)}
<p class="note">${OWN_DOLLARS}</p>
${mayAct && bulkButtons({ tasks: page.tasks, isFailed: only === "failed", key: await formKey(sessionToken(c) ?? ""), back: at(cursor) })}`
    : html`<p class="empty">${page.cursor ? "None among the tasks read so far. Older ones may match." : "None."}</p>`
}
<p class="paging">${cursor && html`<a href="${at()}">Newest</a>`}
${page.cursor && html`<a rel="next" href="${at(page.cursor)}">Older</a>`}</p>`;
  // Older pages stay as they are: what changes moves to the first.
  return renderPage(c, { title, main, at: `/ui${path}`, live: cursor ? undefined : "/ui/live" });
}

const ANY = "Task|State|Agent|Changed|Failures>|Own dollars>";
const FAILED = "Task|Reason|Agent|Failed|Failures>|Own dollars>";

function row(task: Task, now: Millis, isFailed: boolean, mayAct: boolean): Html {
  const { id, agent, state, updatedAt, attempts, spent } = task;
  const reason =
    task.state === "failed" && html`<code>${task.error.code}</code> ${line(task.error.message, 120)}`;
  const isOver = isFinal(task) && state !== "failed";
  const labels = Object.entries(task.meta?.labels ?? {}).slice(0, 3);
  return html`<tr id="t-${id}">${
    mayAct &&
    html`<td class="pick">${!isOver && html`<input type="checkbox" form="${FORM}" name="task" value="${boxOf(task)}" aria-label="Choose ${id}">`}</td>`
  }<th scope="row"><a href="${taskPath(id)}"><code>${id}</code></a>${labels.map(([name, value]) => html` <span class="label note">${line(`${name}=${value}`, 40)}</span>`)}</th>
${isFailed ? html`<td class="wrap">${reason}</td>` : html`<td>${badge(state)}</td>`}<td><a href="/ui/agents/${encodeURIComponent(agent)}">${agent}</a></td>
<td>${time(updatedAt)} <span class="note">${ago(updatedAt, now)}</span></td>
${cell("failures", number(attempts), attempts === 0)}${cell("of its own", dollars(spent.usd), spent.usd === 0)}</tr>`;
}

function input(name: string, label: string, value: string | undefined, hint = ""): Html {
  return html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value ?? ""}" placeholder="${hint}" maxlength="200" autocapitalize="none" spellcheck="false"></div>`;
}

function select(name: string, label: string, values: readonly string[], chosen: string | undefined): Html {
  const shown = (value: string) => stateName(value as State);
  return html`<div><label for="${name}">${label}</label><select id="${name}" name="${name}"><option value="">all</option>${values.map(
    (value) =>
      html`<option value="${value}"${value === chosen ? html` selected` : ""}>${shown(value)}</option>`,
  )}</select></div>`;
}
