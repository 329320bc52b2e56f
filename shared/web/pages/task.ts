import type { Hono } from "hono";
import { html } from "hono/html";
import { lost } from "../../journal/budget.ts";
import { type Cost, plus } from "../../journal/cost.ts";
import { type Newest, newestOf } from "../../journal/newest.ts";
import type { Millis, RawMessage, Task, TaskFailure } from "../../task/document.ts";
import { isFinal, stateFacts } from "../../task/table.ts";
import { dollars } from "../../values/dollars.ts";
import { hasScope, taskFor } from "../authorize.ts";
import type { Env } from "../context.ts";
import { doneNotice, taskForms } from "../frame/forms.ts";
import { renderPage } from "../frame/layout.ts";
import { formKey, sessionToken } from "../frame/session.ts";
import {
  ago,
  badge,
  block,
  copyButton,
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
import { type Family, familyOf, familyTable } from "./family.ts";
import { callsOf } from "./journal.ts";
import { logLines } from "./log-lines.ts";
import { spansOf } from "./spans.ts";
import { timeline } from "./timeline.ts";
import { waterfall } from "./waterfall.ts";

/** One task: where it stands, what can be done, how it came there, what it cost. Reads its document and its journal. */
export function addTaskPage(ui: Hono<Env>): void {
  ui.get("/tasks/:id", async (c) => {
    const { deps, token } = c.var;
    const task = await taskFor(c.var, c.req.param("id"));
    const journal = await newestOf(deps.store, task);
    const family = await familyOf(c.var, task, journal);
    const calls = journal ? callsOf(journal) : [];
    const key = await formKey(sessionToken(c) ?? "");
    const now = deps.clock.now();
    const logs = logLines(task, journal);
    const main = html`<p class="crumb"><a href="/ui/tasks?agent=${encodeURIComponent(task.agent)}">${task.agent}</a>${
      task.parent !== undefined &&
      html`, submitted by <a href="${taskPath(task.parent)}"><code>${task.parent}</code></a>`
    }</p>
<div class="head"><h1><code id="task-id">${task.id}</code> ${badge(task.state)}</h1>${copyButton("task-id", "the id")}</div>
<div id="standing">${standing(task, now)}</div>
${hasScope(token, "operate") && taskForms(task, key)}
${task.state === "completed" && part("result", "Result", block(task.result, "Result", undefined, "result-text"), copyButton("result-text", "the result"))}
${family && part("family", "Children", familyTable(family))}
${part("time", "Where the time went", waterfall(spansOf(task, calls, now), task.createdAt))}
${part("story", "Timeline", timeline(task, calls, journal?.before ?? 0))}
${logs && part("logs", "Log", logs)}
${part("input", "Input", block(task.input, "Input", undefined, "input-text"), copyButton("input-text", "the input"))}
${task.state === "failed" && task.raw && part("raw", "Message", message(task.raw))}
${part("cost", "Cost", costs(task, journal, family))}
${part("facts", "Facts", facts(task))}`;
    // Events after this one make the page reload itself.
    const { stamp } = task.history.at(-1) ?? {};
    const after = `${stamp}.${journal?.head.count ?? 0}`;
    const live = isFinal(task) ? undefined : `${taskPath(task.id)}/live?after=${encodeURIComponent(after)}`;
    const says = `Task ${task.id} is ${stateName(task.state)}`;
    return renderPage(c, {
      title: `${task.id} is ${stateName(task.state)}`,
      main,
      at: "/ui/tasks",
      live,
      says,
      notice: doneNotice(c.req.query("done")),
    });
  });
}

/** The sentence on top of the page: what the task's state means for this task. */
function standing(task: Task, now: Millis): Html {
  const asked =
    task.cancelRequested &&
    !isFinal(task) &&
    html`<p class="lead">It was asked to stop ${ago(task.cancelRequested.at, now)}.</p>`;
  return html`${asked}${stands(task, now)}`;
}

function stands(task: Task, now: Millis): Html | string {
  switch (task.state) {
    case "scheduled":
      return html`<p class="lead">To be queued at ${time(task.dueAt)}.</p>${tried(task)}`;
    case "dispatched":
      return html`<p class="lead">In its queue since ${time(task.updatedAt)}, ${ago(task.updatedAt, now)}.</p>${tried(task)}`;
    case "running":
      return html`<p class="lead">${task.started ? "Run" : "Taken, and about to be run,"} by <code>${line(task.runner, 80)}</code>.</p>`;
    case "waiting":
      return html`<p class="lead">Waits for ${task.waitingFor.map((name, i) => html`${i > 0 && " or "}<code>${line(name)}</code>`)}${
        task.dueAt !== undefined && html`, until ${time(task.dueAt)}`
      }.</p>${task.summary !== undefined && block(task.summary, "What it asks")}`;
    case "in_doubt":
      return html`<p class="lead">The effect <code>${line(task.effect)}</code> began, and nobody knows whether it happened.</p>`;
    case "failed":
      return failure(task.error);
    default: {
      const is = isFinal(task) ? "ended at" : `is ${stateFacts[task.state].name} since`;
      return html`<p class="lead">It ${is} ${time(task.updatedAt)}, ${ago(task.updatedAt, now)}.</p>`;
    }
  }
}

function message({ bytes, subject, truncated, base64 }: RawMessage): Html {
  return html`<p class="note">${number(bytes)} bytes on <code>${line(subject)}</code>${truncated && ", cut"}, in Base64:</p>
${block(base64, "Message in Base64")}`;
}

const tried = ({ lastError }: Task): Html | undefined => (lastError ? failure(lastError) : undefined);

function failure({ code, message, phase, stack }: TaskFailure): Html {
  const text = stack === undefined ? message : `${message}\n${stack}`;
  return html`<div class="wrong"><div class="head"><p><code>${code}</code> in the ${phase}</p>${copyButton("error-text", "the error")}</div>${block(text, "Error", 5_000, "error-text")}</div>`;
}

function costs(task: Task, journal: Newest | undefined, family: Family | undefined): Html {
  const spent = journal?.head.spent ?? task.spent;
  const saved = journal?.head.saved ?? task.saved;
  const again = lost(journal?.entries ?? []);
  const row = (name: string, note: string, { turns, inputTokens, outputTokens, usd }: Cost) =>
    html`<tr><th scope="row">${name}</th><td class="wrap note">${note}</td><td class="end">${number(turns)}</td>
<td class="end">${number(inputTokens)}</td><td class="end">${number(outputTokens)}</td><td class="end">${dollars(usd)}</td></tr>`;
  const whole = family && plus(spent, family.spent);
  if (spent.turns + again.turns + saved.turns + (whole?.turns ?? 0) === 0)
    return html`<p class="empty">No model was asked.</p>`;
  const of = journal && journal.before > 0 ? `, by the newest ${number(journal.entries.length)} entries` : "";
  return table("costs", "Cost", heads("Cost|What it is|Turns>|Input tokens>|Output tokens>|Dollars>"), [
    row("Spent", "on answers that are kept", spent),
    row("Re-spent", `at most: asked for, and the answer lost${of}`, again),
    row("Saved", "by the journal: not asked for again", saved),
    ...(family && whole
      ? [
          row(
            "Family",
            `${family.isWhole ? "" : "at least: "}spent with ${number(family.tasks)} tasks that it submitted, and theirs`,
            whole,
          ),
        ]
      : []),
  ]);
}

function facts(task: Task): Html {
  const { meta, orderingKey } = task;
  const labels = Object.entries(meta?.labels ?? {});
  const duplicates = Object.values(task.publishDuplicates).reduce((a, b) => a + b, 0);
  const rows: [string, Html | string | false | undefined][] = [
    ["Agent", html`${task.agent}, lane ${task.lane}`],
    ["Submitted", html`${time(task.createdAt)}${meta?.owner && html` by ${line(meta.owner)}`}`],
    ["Changed", time(task.updatedAt)],
    ["Ordering key", orderingKey !== undefined && line(orderingKey)],
    [
      "Labels",
      labels.length > 0 &&
        html`${labels.map(([name, value]) => html`<span class="label">${line(name)}: ${line(value)}</span> `)}`,
    ],
    ["Starts", number(task.executions)],
    ["Failures", number(task.attempts)],
    ["Dispatches", number(task.dispatches)],
    ["Fence", number(task.fence)],
    ["Duplicates stopped", number(duplicates + task.redeliveriesSkipped)],
    ["Expires", "expiresAt" in task && time(task.expiresAt)],
  ];
  const settled = task.settled.map(
    ({
      queue,
      seq,
      dispatch,
      outcome,
      at,
    }) => html`<tr><th scope="row"><code>${queue}</code></th><td class="end">${seq}</td>
<td class="end">${dispatch}</td><td>${outcome}</td><td>${time(at)}</td></tr>`,
  );
  return html`<dl class="facts">${rows.map(([name, value]) => value && html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${
  settled.length > 0 &&
  html`<details id="settled"><summary>Its messages by stream sequence, and what became of each</summary>
${table("sequences", "Sequences", heads("Queue|Sequence>|Dispatch>|Outcome|At"), settled)}</details>`
}`;
}
