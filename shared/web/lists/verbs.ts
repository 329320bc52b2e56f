import { html } from "hono/html";
import { isPawlError, messageOf } from "../../errors/errors.ts";
import type { Task } from "../../task/document.ts";
import { questionOf } from "../../task/signals.ts";
import { type Change, changes } from "../api/several.ts";
import type { Request } from "../context.ts";
import { type Html, heads, line, table, taskPath } from "../frame/text.ts";

/** What can be done to several tasks at once. */
export interface Verb extends Change {
  /** "Cancel 3 tasks" */
  readonly name: string;
  readonly meaning: string;
  readonly done: string;
}

const VERBS: Readonly<Record<string, Verb>> = {
  cancel: {
    ...changes.cancel,
    name: "Cancel",
    meaning:
      "They end where they are, and those that run are asked to stop. What they have done stays done. One with an effect in doubt is left to its own page.",
    done: "cancelled, or asked to stop",
  },
  redrive: {
    ...changes.redrive,
    name: "Try again",
    meaning: "Each goes on where its journal ends: what is stored there is not done again.",
    done: "started again",
  },
};

export const verbNamed = (name: string): Verb | undefined =>
  Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;

export const tasksOf = (count: string, isOne = count === "1"): string => `${count} task${isOne ? "" : "s"}`;

export interface Outcome {
  readonly id: string;
  /** Why nothing was done. */
  readonly why?: string;
}

/** One after the other: a list of fifty is no storm. */
export async function actOn(c: Request, verb: Verb, chosen: readonly string[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const one of chosen) {
    const id = idOf(one);
    try {
      await verb.act(c.var, id, one.slice(id.length + 1));
      outcomes.push({ id });
    } catch (error) {
      const isMoved = isPawlError(error, "question_moved");
      outcomes.push({ id, why: isMoved ? "It has moved on since the list was made" : messageOf(error) });
    }
  }
  return outcomes;
}

export function outcomeTable(verb: Verb, outcomes: readonly Outcome[], says: string): Html {
  const rows = outcomes.map(
    ({ id, why }) =>
      html`<tr><th scope="row"><a href="${taskPath(id)}"><code>${line(id, 128)}</code></a></th><td class="wrap">${why === undefined ? verb.done : `not done: ${line(why, 300)}`}</td></tr>`,
  );
  return table("outcomes", says, heads("Task|What came of it"), rows);
}

/** A box says the task's id, and what it asked when the list was made. */
export const boxOf = (task: Task): string => `${task.id} ${questionOf(task)}`;
export const idOf = (one: string): string => one.split(" ", 1)[0] ?? "";

/** A form that comes back here with these fields, beside its button. */
export function againForm(
  fields: readonly (readonly [name: string, value: string | null | undefined])[],
  button: string,
  back: Html,
): Html {
  return html`<form method="post" action="/ui/tasks/several">${fields.map(
    ([name, value]) => value != null && html`<input type="hidden" name="${name}" value="${value}">`,
  )}
<div class="buttons"><button id="sure" class="primary">${button}</button> ${back}</div></form>`;
}
