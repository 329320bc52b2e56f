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
  const timer = most && setTimeout(() => over.abort(timedOut(id, timeout, wait.state)), most);
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
  let after: string | undefined;
  let isStreamed = true;
  for (let looks = 1; ; looks++) {
    const task = await getTask<Result>(connection, id, { signal });
    wait.state = task.state;
    if (task.state === "completed") return task.result;
    if (task.state === "failed") throw new NoResult(id, task.state, task.error.code, task.error.message);
    if (task.state === "cancelled") throw new NoResult(id, task.state, "cancelled", "It was cancelled");
    try {
      if (!isStreamed) throw undefined;
      // One try: whatever is in the way, the task can be asked for meanwhile.
      const events = follow({ ...connection, patience: 0 }, id, { signal, ...(after && { after }) });
      for await (const event of events) after = event.id;
    } catch (problem) {
      signal.throwIfAborted();
      const { code, status = 0, retryAfter = 0 } = (problem ?? {}) as Partial<Problem>;
      if (status === 401 || status === 403 || status === 404) throw problem;
      if (code === "foreign_answer") isStreamed = false;
      await connection.sleep(Math.max(connection.pause(looks + 1), retryAfter * 1_000), signal);
    }
  }
}

function timedOut(id: string, timeout: string | undefined, state: State | undefined): Problem {
  const is = state ? `is still ${state.replace("_", " ")}` : "did not answer";
  return new Problem("timed_out", `Task ${id} ${is} after ${timeout}. It goes on: ask again later`);
}
