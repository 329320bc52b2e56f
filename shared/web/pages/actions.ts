import type { Hono } from "hono";
import { cancel, type Resolution, redrive, resolve, signal } from "../../audit/operations.ts";
import { isPawlError, PawlError } from "../../errors/errors.ts";
import type { Deps } from "../../ports/deps.ts";
import type { Task } from "../../task/document.ts";
import { approvalSignal, isAsked, questionOf } from "../../task/signals.ts";
import { canonicalJson, type Json, parseJson } from "../../values/json.ts";
import { bodies } from "../api/schemas.ts";
import { requireScope, taskFor } from "../authorize.ts";
import type { Env } from "../context.ts";
import { formFields } from "../frame/fields.ts";
import type { Done } from "../frame/forms.ts";
import { renderError } from "../frame/layout.ts";
import { taskPath } from "../frame/text.ts";
import { validate } from "../validate.ts";

interface Asked {
  readonly deps: Deps;
  readonly task: Task;
  readonly form: URLSearchParams;
  readonly by: string;
  /** What the form was made for, and whether the task still asks it. */
  readonly question: string;
  readonly isCurrent: boolean;
}

/** "moved": nothing was done. */
type Act = (asked: Asked) => Promise<Done | "moved">;

/** What the forms on a task's page do: the same as the API's operations. */
export function addActions(ui: Hono<Env>): void {
  for (const [verb, act] of Object.entries(acts))
    ui.post(`/tasks/:id/${verb}`, async (c) => {
      requireScope(c.var.token, "operate");
      const task = await taskFor(c.var, c.req.param("id") as string);
      const form = await formFields(c);
      const question = form.get("question") ?? "";
      const isCurrent = question === questionOf(task);
      const asked = { deps: c.var.deps, task, form, by: c.var.token.owner, question, isCurrent };
      const done = await act(asked).catch((error: unknown) => {
        // Somebody else answered between the read and the write.
        if (isPawlError(error, "question_moved")) return "moved" as const;
        throw error;
      });
      if (done !== "moved") return c.redirect(`${taskPath(task.id)}?done=${done}`, 303);
      const why = "The task has moved on since the page was loaded, so nothing was done. Look at it again.";
      return renderError(c, 409, "Not done", why, taskPath(task.id));
    });
}

const acts: Readonly<Record<string, Act>> = {
  answer: async ({ deps, task, form, by, question, isCurrent }) => {
    const note = form.get("note") ?? "";
    const said = { approved: form.get("approved") === "yes", ...(note !== "" && { note }) };
    const value = { ...validate(bodies.approval, said, "The form"), by } as Json;
    const name = askedFor(task, approvalSignal(form.get("name") ?? ""));
    const done: Done = said.approved ? "approved" : "rejected";
    if (isCurrent && isAsked(task, name))
      await signal(deps, task.id, name, value, { question, ifAsked: true });
    // A second click on the same button is fine, unless the task asks another question by now.
    else if (isAsked(task, name) || !isSaid(task, name, value)) return "moved";
    return done;
  },

  cancel: async ({ deps, task, isCurrent }) => {
    // The task came in doubt since the form was made, which did not say what a cancel means then.
    if (task.state === "in_doubt" && !isCurrent) return "moved";
    await cancel(deps, task.id);
    return "cancel";
  },

  redrive: async ({ deps, task, form, question, isCurrent }) => {
    if (!isCurrent) return "moved";
    await redrive(deps, task.id, { fromScratch: form.get("how") === "scratch", question });
    return "redrive";
  },

  resolve: async ({ deps, task, form, question, isCurrent }) => {
    if (!isCurrent) return "moved";
    await resolve(deps, task.id, resolutionOf(form), { question });
    return "resolve";
  },
};

/** The signal that a form names. One with half a character in it came back mended; of two that look alike, neither is meant. */
function askedFor(task: Task, given: string): string {
  const names = task.state === "waiting" ? task.waitingFor : [];
  const alike = names.filter((name) => name.toWellFormed() === given);
  return (alike.length === 1 && alike[0]) || given;
}

function isSaid(task: Task, name: string, value: Json): boolean {
  const last = task.signals.findLast((one) => one.name === name);
  return last !== undefined && canonicalJson(last.value) === canonicalJson(value);
}

function resolutionOf(form: URLSearchParams): Resolution {
  switch (form.get("answer")) {
    case "happened": {
      const receipt = form.get("receipt")?.trim();
      return { happened: true, ...(receipt && { receipt: parseJson(receipt, "The receipt") }) };
    }
    case "not":
      return { happened: false };
    case "fail":
      return { fail: true };
    default:
      throw new PawlError("input_invalid", "The form does not say whether the effect happened");
  }
}
