import { html } from "hono/html";
import { joined } from "../../journal/logs.ts";
import type { Newest } from "../../journal/newest.ts";
import type { Task } from "../../task/document.ts";
import { type Html, number, time, visible } from "../frame/text.ts";

/** What a task's handlers logged: the newest lines, of the document and, while it runs, of the journal's head. */
export function logLines(task: Task, journal: Newest | undefined): Html | undefined {
  const logs = joined(task.logs, journal?.head.logs);
  if (!logs || logs.count === 0) return undefined;
  const { lines, count } = logs;
  const starts = new Set(lines.map(({ fence }) => fence)).size;
  return html`${count > lines.length && html`<p class="note">${number(count - lines.length)} older lines made room.</p>`}
<div class="scroll" role="region" aria-label="Log" tabindex="0"><ol class="log">${lines.map(
    ({ at, fence, level, text }) =>
      html`<li class="${level ?? "info"}">${time(at, "ms")} ${
        starts > 1 && html`<span class="note">fence ${fence}</span> `
      }${level && html`<strong>${level}</strong> `}<span>${visible(text)}</span></li>`,
  )}</ol></div>`;
}
