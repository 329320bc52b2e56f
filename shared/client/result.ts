import type { Json } from "../agent.ts";
import { type Connection, durationOf } from "./connection.ts";
import { follow } from "./events.ts";
import { NoResult, Problem } from "./problem.ts";
import { askJson, type CallOptions } from "./request.ts";
import type { State, Task } from "./task.ts";

/** Of a wait for a result. */
export interface ResultOptions extends CallOptions {
  /** How long to wait at most: "5m". The task goes on in any case. None by default. */
  readonly timeout?: string;
}

export function getTask<Result = Json>(
  connection: Connection,
  id: string,
  { signal }: CallOptions = {},
): Promise<Task<Result>> {
  return askJson(connection, { path: `/v1/tasks/${encodeURIComponent(id)}`, signal, isRepeatable: true });
}

/**
 * Waits until the task is over. Its events say when; where they can't be had (something in between holds streams back, or
 * too many are open) it is asked for now and then. The task itself says what came of it, in any case.
 */
export async function resultOf<Result>(
  connection: Connection,
  id: string,
  { timeout, signal }: ResultOptions = {},
): Promise<Result> {
  const most = timeout === undefined ? undefined : durationOf("timeout", timeout, 0);
  const over = new AbortController();
  const wait = { state: undefined as State | undefined };
  const end = () => over.abort(timedOut(id, timeout, wait.state));
  const timer = most === undefined ? undefined : setTimeout(end, most);
  // Who says how long to wait, is patient for as long with servers that are away.
  const patient = { ...connection, patience: Math.max(most ?? 0, connection.patience) };
  try {
    return await wholeWait<Result>(
      patient,
      id,
      wait,
      signal ? AbortSignal.any([signal, over.signal]) : over.signal,
    );
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

async function wholeWait<Result>(
  connection: Connection,
  id: string,
  wait: { state: State | undefined },
  signal: AbortSignal,
): Promise<Result> {
  const place: { after?: string } = {};
  let isStreamed = true;
  for (let looks = 1; ; looks++) {
    const task = await getTask<Result>(connection, id, { signal });
    wait.state = task.state;
    if (task.state === "completed") return task.result;
    if (task.state === "failed") throw new NoResult(id, task.state, task.error.code, task.error.message);
    if (task.state === "cancelled") throw new NoResult(id, task.state, "cancelled", "It was cancelled");
    const inTheWay = isStreamed ? await followed(connection, id, place, signal) : {};
    if (!inTheWay) continue;
    if (inTheWay.code === "foreign_answer") isStreamed = false;
    const { retryAfter = 0 } = inTheWay;
    await connection.sleep(Math.max(connection.pause(looks + 1), retryAfter * 1_000), signal);
  }
}

/** A token that is not valid, or a task that is not there: to ask again would not help. */
const FOR_GOOD: readonly (number | undefined)[] = [401, 403, 404];

/** Follows its events to their end, from where they were followed to before. Returns what was in the way, if something was. */
async function followed(
  connection: Connection,
  id: string,
  place: { after?: string },
  signal: AbortSignal,
): Promise<Partial<Problem> | undefined> {
  try {
    // One try: whatever is in the way, the task can be asked for meanwhile.
    const events = follow({ ...connection, patience: 0 }, id, { ...place, signal });
    for await (const event of events) place.after = event.id;
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Problem) || FOR_GOOD.includes(error.status)) throw error;
    return error;
  }
}

function timedOut(id: string, timeout: string | undefined, state: State | undefined): Problem {
  const is = state ? `is still ${state.replace("_", " ")}` : "did not answer";
  return new Problem("timed_out", `Task ${id} ${is} after ${timeout}. It goes on: ask again later`);
}
