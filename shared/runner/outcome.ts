import type { Suspension } from "../handler/suspension.ts";
import { farOf } from "../journal/entries.ts";
import type { Running, TaskFailure } from "../task/document.ts";
import type { Json } from "../values/json.ts";

/** How an execution ended. `ended`: the handler's code is over; false when it ignores its signal and still runs. */
export type Outcome =
  | { readonly kind: "completed"; readonly result: Json; readonly ended: boolean }
  | { readonly kind: "retry"; readonly error: TaskFailure; readonly after?: number; readonly ended: boolean }
  | { readonly kind: "failed"; readonly error: TaskFailure; readonly ended: boolean }
  | Suspension
  | { readonly kind: "cancelled"; readonly ended: boolean }
  | { readonly kind: "abandoned" };

/** An execution that is over, and how far it brought its task's journal. */
export interface Ran {
  readonly outcome: Outcome;
  readonly journal: Pick<Running, "journaled" | "again" | "unjournaled" | "spent" | "saved" | "logs">;
  /** This execution stored something in it. */
  readonly isFurther?: boolean;
}

/** Of a task whose journal this execution has not opened. */
export function journalOf(task: Running): Ran["journal"] {
  const { fresh, spent, saved } = task;
  return { ...farOf(task), spent, saved, ...(fresh && { unjournaled: true }) };
}
