import type * as z from "zod";
import { cancel, redrive } from "../../audit/operations.ts";
import { isPawlError, PawlError } from "../../errors/errors.ts";
import type { Task } from "../../task/document.ts";
import { questionOf } from "../../task/signals.ts";
import { isFinal } from "../../task/table.ts";
import { taskFor } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import type { bodies } from "./schemas.ts";
import { isFound } from "./search.ts";
import { listTasks } from "./tasks.ts";

/** What can be done to several tasks at once, by the API, the dashboard and commands. */
export interface Change {
  /** Whether it is meant by "all that match": others are passed over. */
  isFor(task: Task): boolean;
  /** `question`: what the task asked when it was listed. */
  act(seen: Env["Variables"], id: string, question: string): Promise<Task>;
}

export const changes = {
  cancel: {
    isFor: (task) => !isFinal(task) && task.state !== "in_doubt" && !task.cancelRequested,
    act: async (seen, id) => {
      const task = await taskFor(seen, id);
      if (isFinal(task)) throw new PawlError("illegal_transition", `It is ${task.state} by now`);
      // Whether the effect happened would stay unknown, which nobody is asked here.
      if (task.state === "in_doubt")
        throw new PawlError("illegal_transition", "An effect of it is in doubt: resolve that first");
      return cancel(seen.deps, id);
    },
  },
  redrive: {
    isFor: (task) => task.state === "failed" && !task.raw,
    act: async (seen, id, question) => {
      await taskFor(seen, id);
      return redrive(seen.deps, id, { question });
    },
  },
} as const satisfies Readonly<Record<string, Change>>;

/** Done by one request: on Firestore, about a dozen requests each, of which a Worker may make a thousand. */
const AT_ONCE = 25;
/** Counted by one request. */
const COUNTED = 1_000;
/** Named before anything is done. */
const NAMED = 10;

interface Several<Body extends keyof typeof bodies> {
  readonly body: z.infer<(typeof bodies)[Body]>;
}

export function cancelSeveral(c: Request, { body }: Several<"cancelSeveral">): Promise<Response> {
  return several(c, changes.cancel, body);
}

export function redriveSeveral(c: Request, { body }: Several<"redriveSeveral">): Promise<Response> {
  return several(c, changes.redrive, { ...body, state: "failed" });
}

/**
 * A slice of all that match, the last changed first: one by one, each as if it had been asked for alone. What came or changed
 * after `until` is left alone, and so is what an earlier request with the same `until` has done: whoever lost its answer asks
 * again. A failure that may pass ends the slice, and is asked again in the same way; any other is told of its task.
 */
async function several(
  c: Request,
  change: Change,
  { all: _, dryRun = false, until: said, limit = AT_ONCE, ...query }: Several<"cancelSeveral">["body"],
): Promise<Response> {
  const { deps, charge } = c.var;
  const now = deps.clock.now();
  const until = Math.min(said ?? now, now);
  const isSought = isFound(query);
  // By the clock of a runner that is behind, what was redriven since may have failed again before.
  const isAsItWas = (task: Task) =>
    [task.updatedAt, ...task.history.map(({ at }) => at)].every((at) => at <= until);
  const isMeant = (task: Task) => change.isFor(task) && isAsItWas(task) && isSought(task);
  const page = await listTasks(c.var, { ...query, limit: dryRun ? COUNTED : limit }, isMeant);
  const rest = { until, ...(page.cursor !== undefined && { cursor: page.cursor }) };
  if (dryRun) {
    const ids = page.tasks.slice(0, NAMED).map(({ id }) => id);
    return c.json({ count: page.tasks.length, ids, skipped: [], ...rest });
  }
  const ids: string[] = [];
  const skipped: { id: string; code: string; detail: string }[] = [];
  for (const task of page.tasks) {
    const { id } = task;
    // As much as a request of its own.
    charge(1, "owed");
    try {
      await change.act(c.var, id, questionOf(task));
      ids.push(id);
    } catch (error) {
      if (!isPawlError(error) || error.disposition === "retry") throw error;
      skipped.push({ id, code: error.code, detail: error.message });
    }
  }
  return c.json({ count: ids.length, ids, skipped, ...rest });
}
