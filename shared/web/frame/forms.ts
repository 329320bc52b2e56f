import { html } from "hono/html";
import type { Failed, InDoubt, Task, Waiting } from "../../task/document.ts";
import { approvalSignal, questionOf } from "../../task/signals.ts";
import { isFinal } from "../../task/table.ts";
import { type Html, line, taskPath } from "./text.ts";

const APPROVAL = approvalSignal("");

/** What a person can do to a task in its state: plain forms, each with the session's key. */
export function taskForms(task: Task, key: string): Html {
  const question = questionOf(task);
  const form: Form = (verb, name, content) =>
    html`<form id="${verb}-${encoded(name)}-${question}" method="post" action="${taskPath(task.id)}/${verb}">
<input type="hidden" name="key" value="${key}"><input type="hidden" name="question" value="${question}">${content}</form>`;
  return html`<div id="forms">${task.state === "waiting" && answers(task, form, question)}
${task.state === "in_doubt" && doubts(task, form, question)}
${task.state === "failed" && again(task, form, question)}
${!isFinal(task) && !task.cancelRequested && cancels(task, form, question)}</div>`;
}

/** For an id. A name may hold half a character, which no browser sends back as it was. */
const encoded = (name: string) => encodeURIComponent(name.toWellFormed());

type Form = (verb: string, name: string, content: Html) => Html;

/** Folded, so that what can't be taken back is two steps away. */
function folded(id: string, title: string, explained: string, form: Html): Html {
  return html`<details id="${id}" class="folded"><summary>${title}</summary><p>${explained}</p>${form}</details>`;
}

function answers({ id, waitingFor }: Waiting, form: Form, question: string): Html {
  const approvals = waitingFor.filter((name) => name.startsWith(APPROVAL));
  const events = waitingFor.filter((name) => !name.startsWith(APPROVAL) && !name.startsWith("child:"));
  return html`${approvals.map((signal) => {
    const name = signal.slice(APPROVAL.length);
    const at = `${encoded(name)}-${question}`;
    return html`<section class="panel" aria-label="Approval of ${line(name)}">${form(
      "answer",
      name,
      html`<input type="hidden" name="name" value="${name.toWellFormed()}">
<p><strong>Approval of ${line(name)}</strong></p>
<label for="note-${at}">Note (optional)</label>
<textarea id="note-${at}" name="note" maxlength="2000" rows="2"></textarea>
<div class="buttons"><button id="approve-${at}" class="primary" name="approved" value="yes">Approve</button>
<button id="reject-${at}" name="approved" value="no">Reject</button></div>`,
    )}</section>`;
  })}${events.map((name) => html`<p class="note">To send the event: <code>pawl signal ${id} ${line(name)}</code></p>`)}`;
}

function doubts({ effect }: InDoubt, form: Form, question: string): Html {
  return html`<section class="panel" aria-label="What became of the effect">
<p><strong>Find out whether ${line(effect)} happened, then say so.</strong></p>
${form(
  "resolve",
  "it",
  html`<label for="receipt-${question}">Its receipt as JSON, if there is one: what the effect would have returned</label>
<textarea id="receipt-${question}" name="receipt" rows="2" spellcheck="false"></textarea>
<div class="buttons"><button id="happened-${question}" class="primary" name="answer" value="happened">It happened</button>
<button id="not-${question}" name="answer" value="not">It did not happen: do it</button></div>`,
)}
${folded(
  `give-up-${question}`,
  "Nobody can find out",
  "The task is given up, as a dead letter. It can be tried again later.",
  form(
    "resolve",
    "fail",
    html`<button id="fail-${question}" class="danger" name="answer" value="fail">Give the task up</button>`,
  ),
)}</section>`;
}

function again({ raw }: Failed, form: Form, question: string): Html {
  if (raw)
    return html`<p class="note">This is a message that could not be read as a task, so there is nothing to run again.</p>`;
  return html`<section class="panel" aria-label="Trying again">
${form(
  "redrive",
  "journal",
  html`<p>What succeeded stays done, and is not paid again. The answer that it failed on (an approval, an event, a child) is asked for again.</p>
<div class="buttons"><button id="redrive-${question}" class="primary" name="how" value="journal">Try again</button></div>`,
)}
${folded(
  `scratch-${question}`,
  "Start from scratch",
  "Its journal is forgotten: every step, model turn and effect is done again, and paid again.",
  form(
    "redrive",
    "scratch",
    html`<button id="anew-${question}" class="danger" name="how" value="scratch">Do all of it again</button>`,
  ),
)}</section>`;
}

function cancels({ state }: Task, form: Form, question: string): Html {
  const explained =
    state === "running"
      ? "Its handler is asked to stop. What it has done stays done."
      : state === "in_doubt"
        ? "It ends here, and whether the effect happened stays unknown."
        : "It ends here. What it has done stays done.";
  return folded(
    "cancel",
    "Cancel this task",
    explained,
    form("cancel", "it", html`<button id="cancel-${question}" class="danger">Cancel the task</button>`),
  );
}

const DONE = {
  approved: "You approved it.",
  rejected: "You rejected it.",
  cancel: "You cancelled it, or asked its handler to stop.",
  redrive: "You started it again.",
  resolve: "You answered whether the effect happened.",
} as const;
export type Done = keyof typeof DONE;

/** The notice named by the page's address: one of the sentences above, never text from the address itself. */
export function doneNotice(done: string | undefined): string | undefined {
  return Object.hasOwn(DONE, done ?? "") ? DONE[done as Done] : undefined;
}
