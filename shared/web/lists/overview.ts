import type { Hono } from "hono";
import { html } from "hono/html";
import { type AgentQueues, agentQueues } from "../../dispatch/queues.ts";
import type { TaskPage } from "../../ports/store.ts";
import type { Millis, State, Task } from "../../task/document.ts";
import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { filterOf, listTasks } from "../api/tasks.ts";
import { mayUse, seesAll } from "../authorize.ts";
import type { Env, WebAgent } from "../context.ts";
import { renderPage } from "../frame/layout.ts";
import {
  badge,
  cell,
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
import { costOfLook } from "../rate-limit.ts";
import { cached } from "./cache.ts";

/** Tasks of a state are counted up to here, and shown as "100,000+" beyond: by a store that counts, and by one that lists. */
const COUNTED = 100_000;
const COUNTED_BY_LIST = 500;
const LISTED = 10;
/** Today's spending is added up over this many of the newest tasks. */
const NEWEST = 100;

const WATCHED = ["running", "waiting", "in_doubt", "failed"] as const;
type Watched = (typeof WATCHED)[number];

/** A task in a list. Without its input and result: lists are kept for a while. */
interface Brief {
  readonly id: string;
  readonly agent: string;
  readonly state: State;
  readonly changedAt: Millis;
  /** When its handler was started or its message taken, while it runs; when it changed last otherwise. */
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
  const fromCache = cached<Readonly<Record<Watched, Seen>>>();
  ui.get("/", async (c) => {
    const { deps, token } = c.var;
    const mine = agents.filter(({ name }) => mayUse(token, name));
    const look = async () => {
      if (!deps.store.count && !seesAll(token)) return seenOfOwn(c.var);
      const pages = WATCHED.map(async (state) => [state, await seenIn(c.var, state)] as const);
      return Object.fromEntries(await Promise.all(pages)) as Record<Watched, Seen>;
    };
    const sees = JSON.stringify([deps.settings.namespace, seesAll(token) || token.owner, token.agents]);
    const [{ value: by, again }, newest, queues] = await Promise.all([
      fromCache(sees, look),
      listTasks(c.var, { limit: NEWEST }),
      agentQueues(deps, mine),
    ]);
    const now = deps.clock.now();
    const asks = [...by.in_doubt.tasks, ...by.waiting.tasks].slice(0, LISTED);
    const last = newest.tasks.slice(0, LISTED).map(brief);
    const main = html`<h1>Overview</h1>
<ul class="tiles">${WATCHED.map((state) => tile(state, by[state]))}${spendTile(newest, now)}</ul>
${WATCHED.some((state) => by[state].count.endsWith("+")) && html`<p class="note">A + means at least so many: counting stops at ${number(deps.store.count ? COUNTED : COUNTED_BY_LIST)} tasks of a state, or where it would have to read too many others.</p>`}
${section("asks", "Waits for a person", "Task|What it asks|State|Agent|Since", asks, askRow(now))}
${section("now", "Running now", "Task|Agent|Runs for>|Runner", by.running.tasks, runningRow(now))}
${section("agents", "Agents", "Agent|Lanes>|Queued>|In flight>|Oldest>|Redelivered>", queues, agentRow)}
${section("last", "Changed last", "Task|State|Agent|Changed", last, lastRow(now))}
${!seesAll(token) && html`<p class="note">Tasks are those of ${token.owner}; queues are everybody's.</p>`}`;
    const says = WATCHED.slice(1).map((state) => `${by[state].count} ${stateName(state)}`);
    return renderPage(c, {
      title: "Overview",
      main,
      at: "/ui",
      live: "/ui/live",
      again,
      says: says.join(", "),
    });
  });
}

/** Not charged to the token: whoever sees everything shares one answer, and others' is counted by the store. */
async function seenIn({ deps: { store }, token }: Env["Variables"], state: Watched): Promise<Seen> {
  const filter = filterOf(token, { state }) ?? {};
  if (!store.count) return seenOf(await store.list(filter, COUNTED_BY_LIST + 1));
  const [all, { tasks }] = await Promise.all([store.count(filter, COUNTED + 1), store.list(filter, LISTED)]);
  return { count: countOf(all, COUNTED, false), tasks: tasks.map(brief) };
}

/**
 * In one pass where the store has to look at everybody's documents, and charged as a list of the API's is: there is one
 * such answer for each owner, so the cache bounds nothing.
 */
async function seenOfOwn({ deps, token, charge }: Env["Variables"]): Promise<Record<Watched, Seen>> {
  const filter = { ...filterOf(token, {}), states: WATCHED };
  const { tasks, cursor, looked = tasks.length } = await deps.store.list(filter, COUNTED_BY_LIST + 1);
  charge(costOfLook(looked), "owed");
  const seen = WATCHED.map((name) => {
    const some = tasks.filter(({ state }) => state === name);
    return [name, seenOf({ tasks: some, ...(cursor !== undefined && { cursor }) })] as const;
  });
  return Object.fromEntries(seen) as Record<Watched, Seen>;
}

const countOf = (all: number, most: number, isMore: boolean) =>
  `${number(Math.min(all, most))}${isMore || all > most ? "+" : ""}`;

/** A page that ends early, and says where to go on, has not seen everything. */
function seenOf({ tasks, cursor }: TaskPage): Seen {
  const count = countOf(tasks.length, COUNTED_BY_LIST, cursor !== undefined);
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
      ? `spent in all by the ${number(today.length)} tasks that changed today (UTC)`
      : `spent in all by the last ${number(today.length)} tasks; more changed today (UTC)`
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

function agentRow({ name, lanes, pending, inFlight, oldestAge, redelivered, paused }: AgentQueues): Html {
  return html`<tr id="agent-${name}"><th scope="row"><a href="/ui/agents/${encodeURIComponent(name)}">${name}</a>${paused && html` <span class="note">paused</span>`}</th>
${cell("lanes", number(lanes))}${cell("queued", number(pending))}${cell("in flight", number(inFlight))}
${cell("the oldest", oldestAge > 0 ? sayDuration(oldestAge) : "–", oldestAge <= 0)}${cell("redelivered", number(redelivered), redelivered === 0)}</tr>`;
}
