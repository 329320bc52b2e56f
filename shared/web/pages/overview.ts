import type { Hono } from "hono";
import { html } from "hono/html";
import { type AgentQueues, agentQueues } from "../../dispatch/queues.ts";
import type { TaskPage } from "../../ports/store.ts";
import type { Millis, State, Task } from "../../task/document.ts";
import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { type Env, mayUse, type WebAgent } from "../authenticate.ts";
import { show } from "../frame/layout.ts";
import {
  badge,
  type Html,
  heads,
  line,
  number,
  part,
  stateName,
  table,
  taskPath,
  time,
} from "../frame/text.ts";
import { list } from "../tasks.ts";
import { remembered } from "./cache.ts";

/** Of each state so many are counted, and then it is "more than". */
const COUNTED = 20;
const LISTED = 10;
/** Of these the spending of today is added up. */
const NEWEST = 100;

const WATCHED = ["running", "waiting", "in_doubt", "failed"] as const;
type Watched = (typeof WATCHED)[number];

/** A task in a list. Without its input and result: lists are kept for a while. */
interface Brief {
  readonly id: string;
  readonly agent: string;
  readonly state: State;
  readonly changedAt: Millis;
  /** Since when it is as it is: when its handler was started, or its message taken. */
  readonly since: Millis;
  /** What it asks for, or who runs it. */
  readonly about: string;
}

interface Seen {
  readonly count: string;
  readonly tasks: readonly Brief[];
}

/** What goes on now. Reads a page of each state that matters and one of the newest, however many tasks there are. */
export function addOverview(ui: Hono<Env>, agents: readonly WebAgent[]): void {
  const remember = remembered<Readonly<Record<Watched, Seen>>>();
  ui.get("/", async (c) => {
    const { deps, token } = c.var;
    const mine = agents.filter(({ name }) => mayUse(token, name));
    const isOperator = token.scopes.includes("operate");
    const look = async () => {
      const pages = WATCHED.map(
        async (state) => [state, seenOf(await list(c.var, { state, limit: COUNTED + 1 }))] as const,
      );
      return Object.fromEntries(await Promise.all(pages)) as Record<Watched, Seen>;
    };
    const sees = JSON.stringify([deps.settings.namespace, isOperator || token.owner, token.agents]);
    const [{ value: by, again }, newest, queues] = await Promise.all([
      remember(sees, look),
      list(c.var, { limit: NEWEST }),
      agentQueues(deps, mine),
    ]);
    const now = deps.clock.now();
    const asks = [...by.in_doubt.tasks, ...by.waiting.tasks].slice(0, LISTED);
    const last = newest.tasks.slice(0, LISTED).map(brief);
    const main = html`<h1>Overview</h1>
<ul class="tiles">${WATCHED.map((state) => tile(state, by[state]))}${spendTile(newest, now)}</ul>
${section("asks", "Waits for a person", "Task|What it asks|State|Agent|Since", asks, askRow(now))}
${section("now", "Running now", "Task|Agent|Runs for>|Runner", by.running.tasks, runningRow(now))}
${section("agents", "Agents", "Agent|Lanes>|Queued>|In flight>|Oldest>|Redelivered>", queues, agentRow)}
${section("last", "Changed last", "Task|State|Agent|Changed", last, lastRow(now))}
${!isOperator && html`<p class="note">Tasks are those of ${token.owner}; queues are everybody's.</p>`}`;
    const says = WATCHED.slice(1).map((state) => `${by[state].count} ${stateName(state)}`);
    return show(c, { title: "Overview", main, at: "/ui", live: "/ui/live", again, says: says.join(", ") });
  });
}

/** A page that ends early, and says where to go on, has not seen everything. */
function seenOf({ tasks, cursor }: TaskPage): Seen {
  const isMore = tasks.length > COUNTED || cursor !== undefined;
  const count = `${Math.min(tasks.length, COUNTED)}${isMore ? "+" : ""}`;
  return { count, tasks: tasks.slice(0, LISTED).map(brief) };
}

function brief(task: Task): Brief {
  const { id, agent, state, history, updatedAt: changedAt } = task;
  const started = history.findLast(({ event }) => BEGINS.has(event))?.at;
  const since = (state === "running" && started) || changedAt;
  return { id, agent, state, changedAt, since, about: about(task) };
}

function about(task: Task): string {
  if (task.state === "running") return line(task.runner, 80);
  if (task.state === "in_doubt") return `Whether ${line(task.effect)} happened`;
  return task.state === "waiting" ? line(task.summary ?? task.waitingFor.join(", ")) : "";
}

const BEGINS: ReadonlySet<string> = new Set(["claim", "takeover", "start", "adopt"]);

function tile(state: Watched, { count, tasks }: Seen): Html {
  const path = state === "failed" ? "/ui/dead-letters" : `/ui/tasks?state=${state}`;
  const calls = tasks.length > 0 && state !== "running" ? "calls" : "";
  return html`<li id="tile-${state}" class="${state} ${calls}"><a href="${path}">
<span class="figure">${count}</span> ${state === "failed" ? "dead letters" : stateName(state)}</a></li>`;
}

/** Of tasks, not of calls: what a task spent on other days counts too, if it changed today. */
function spendTile({ tasks, cursor }: TaskPage, now: Millis): Html {
  const today = tasks.filter(({ updatedAt }) => updatedAt >= now - (now % 86_400_000));
  const sum = today.reduce((all, { spent }) => all + spent.usd, 0);
  const isAll = today.length < tasks.length || cursor === undefined;
  return html`<li id="tile-spend"><div><span class="figure">${dollars(sum)}</span> ${
    isAll
      ? `spent in all by the ${number(today.length)} tasks that changed today`
      : `spent in all by the last ${number(today.length)} tasks; more changed today`
  }</div></li>`;
}

function section<T>(
  id: string,
  title: string,
  names: string,
  items: readonly T[],
  row: (item: T) => Html,
): Html {
  const none = html`<p class="empty">None.</p>`;
  const rows = items.map(row);
  return part(id, title, items.length > 0 ? table(`${id}-table`, title, heads(names), rows) : none);
}

const link = ({ id }: Brief, place: string): Html =>
  html`<th scope="row"><a id="${place}-link-${id}" href="${taskPath(id)}"><code>${id}</code></a></th>`;

const askRow = (now: Millis) => (task: Brief) =>
  html`<tr id="ask-${task.id}">${link(task, "ask")}<td class="wrap">${task.about}</td>
<td>${badge(task.state)}</td><td>${task.agent}</td><td>${sayDuration(now - task.since)}</td></tr>`;

const runningRow = (now: Millis) => (task: Brief) =>
  html`<tr id="run-${task.id}">${link(task, "run")}<td>${task.agent}</td>
<td class="end">${sayDuration(now - task.since)}</td><td><code>${task.about}</code></td></tr>`;

const lastRow = (now: Millis) => (task: Brief) =>
  html`<tr id="last-${task.id}">${link(task, "last")}<td>${badge(task.state)}</td><td>${task.agent}</td>
<td>${time(task.changedAt)} <span class="note">${sayDuration(now - task.changedAt)} ago</span></td></tr>`;

function agentRow({ name, lanes, pending, inFlight, oldestAge, redelivered }: AgentQueues): Html {
  return html`<tr id="agent-${name}"><th scope="row"><a href="/ui/tasks?agent=${encodeURIComponent(name)}">${name}</a></th>
<td class="end">${number(lanes)}</td><td class="end">${number(pending)}</td><td class="end">${number(inFlight)}</td>
<td class="end">${oldestAge > 0 ? sayDuration(oldestAge) : "–"}</td><td class="end">${number(redelivered)}</td></tr>`;
}
