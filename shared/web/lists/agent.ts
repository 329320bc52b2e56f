import type { Hono } from "hono";
import { html, raw } from "hono/html";
import { agentQueues } from "../../dispatch/queues.ts";
import { chart, type Figure } from "../../reconcile/page/chart.ts";
import type { Millis, Task } from "../../task/document.ts";
import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { filterOf } from "../api/tasks.ts";
import { hasScope, mayUse, seesAll } from "../authorize.ts";
import type { Env, WebAgent } from "../context.ts";
import { renderPage } from "../frame/layout.ts";
import { formKey, sessionToken } from "../frame/session.ts";
import { cell, type Html, heads, number, OWN_DOLLARS, part, table, time } from "../frame/text.ts";
import { costOfLook } from "../rate-limit.ts";
import { type Activity, activityOf, SPANS, type SpanName } from "./activity.ts";
import { cached } from "./cache.ts";
import { addPauseForms, notThere, pauseBanner, pauseForm, pauseNotice } from "./pause.ts";

/** Tasks that are shown on one page; and documents that are looked at for them, where most are another's. */
const MOST = 1_000;
const MOST_LOOKED = 2_000;

interface Looked {
  readonly activity: Activity;
  /** Set where there were more tasks than are looked at: since when all of them were. */
  readonly seenFrom?: Millis;
}

const short = (value: number) => (value === 0 || value >= 9.95 ? value.toFixed(0) : value.toFixed(1));
const whole = { show: number, brief: number };
const FIGURES: readonly Figure[] = [
  { name: "perMinute", label: "Tasks ended a minute", show: (value) => value.toFixed(2), brief: short },
  { name: "p95", label: "Submit to completion, p95", show: sayDuration, brief: sayDuration },
  { name: "failed", label: "Failed", ...whole },
  { name: "usd", label: "Own dollars of tasks that ended", show: dollars, brief: dollars },
];

/** An agent's page: its queues, and what its tasks did over time, by the newest of them. */
export function addAgentPage(ui: Hono<Env>, agents: readonly WebAgent[]): void {
  const fromCache = cached<Looked>();
  addPauseForms(ui, agents);
  ui.get("/agents/:name", async (c) => {
    const { deps, token } = c.var;
    const name = c.req.param("name");
    const agent = agents.find((one) => one.name === name);
    if (!agent || !mayUse(token, name)) return notThere(c, name);
    const asked = c.req.query("span") ?? "24h";
    const span: SpanName = Object.hasOwn(SPANS, asked) ? (asked as SpanName) : "24h";
    const sees = JSON.stringify([deps.settings.namespace, seesAll(token) || token.owner, name, span]);
    const [{ value }, [queue]] = await Promise.all([
      fromCache(sees, () => look(c.var, name, span)),
      agentQueues(deps, [agent]),
    ]);
    const { activity, seenFrom } = value;
    const mayPause = hasScope(token, "operate");
    const key = formKey(sessionToken(c) ?? "");
    const main = html`<p class="crumb"><a href="/ui">Agents</a></p><h1>${name}</h1>
${queue?.paused && pauseBanner(queue.paused)}
<nav class="spans" aria-label="Time"><ul>${Object.keys(SPANS).map((one) => html`<li><a href="?span=${one}"${one === span ? html` aria-current="page"` : ""}>${one}</a></li>`)}</ul></nav>
<ul class="tiles">${[
      ...(queue ? [tile("queued", number(queue.pending)), tile("in flight", number(queue.inFlight))] : []),
      tile("ended", number(activity.ended)),
      tile("failed", number(activity.failed)),
      tile("submit to completion, p50", activity.p50 === undefined ? "–" : sayDuration(activity.p50)),
      tile("own dollars of those that ended", dollars(activity.usd)),
    ]}</ul>
${seenFrom !== undefined && html`<p class="note">There is more than is looked at for a page: only tasks that changed since ${time(seenFrom)} are shown.</p>`}
${part("time", `Over ${SPANS[span].title}, in UTC`, html`<ul class="charts">${FIGURES.map((one) => html`<li><span>${one.label}</span>${raw(chart(activity.parts, one))}</li>`)}</ul>`)}
<p class="note">${OWN_DOLLARS}</p>
${activity.reasons.length > 0 && reasons(name, activity)}
<p class="paging"><a href="/ui/tasks?agent=${encodeURIComponent(name)}">Its tasks</a> <a href="/ui/dead-letters?agent=${encodeURIComponent(name)}">Its dead letters</a></p>
${mayPause && pauseForm(name, queue?.paused !== undefined, key)}
${!seesAll(token) && html`<p class="note">Tasks are those of ${token.owner}; queues are everybody's.</p>`}`;
    return renderPage(c, { title: name, main, at: "/ui", notice: pauseNotice(c.req.query("done")) });
  });
}

/** Charged as a list of the API's is, to whoever finds no answer in the cache. */
async function look(
  { deps, token, charge }: Env["Variables"],
  agent: string,
  span: SpanName,
): Promise<Looked> {
  const filter = filterOf(token, { agent }) ?? { agent };
  const now = deps.clock.now();
  const since = now - SPANS[span].length - 3_600_000;
  const tasks: Task[] = [];
  let cursor: string | undefined;
  let looked = 0;
  do {
    const page = await deps.store.list(filter, MOST - tasks.length, cursor);
    const cost = page.looked ?? page.tasks.length;
    charge(costOfLook(cost), "owed");
    looked += Math.max(1, cost);
    tasks.push(...page.tasks);
    ({ cursor } = page);
    const isFarEnough = (tasks.at(-1)?.updatedAt ?? now) < since;
    if (isFarEnough || tasks.length >= MOST) break;
  } while (cursor !== undefined && looked < MOST_LOOKED);
  const oldest = tasks.at(-1)?.updatedAt ?? now;
  const isCut = cursor !== undefined && oldest > since;
  return {
    activity: activityOf(tasks, span, { now, seenFrom: isCut ? oldest : 0 }),
    ...(isCut && { seenFrom: oldest }),
  };
}

const tile = (label: string, value: string): Html =>
  html`<li><div><span class="figure">${value}</span> ${label}</div></li>`;

function reasons(agent: string, { reasons: all }: Activity): Html {
  const rows = all.map(
    ([code, count]) =>
      html`<tr id="reason-${code}"><th scope="row"><a href="/ui/dead-letters?${new URLSearchParams({ agent, error: code }).toString()}"><code>${code}</code></a></th>${cell("failed", number(count))}</tr>`,
  );
  return part(
    "reasons",
    "Why tasks failed",
    table("reasons-table", "Why tasks failed", heads("Reason|Tasks>"), rows),
  );
}
