import { setTimeout as sleep } from "node:timers/promises";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { resolve } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { State } from "../../shared/task/document.ts";
import { isFinal } from "../../shared/task/table.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import type { Deed } from "./deeds.ts";
import { AGENT, LANES } from "./work.ts";

/** What became of the tasks of a soak so far. */
export interface Tasks {
  readonly accepted: Set<string>;
  /** Of those that are not over, as they were when somebody last looked. */
  readonly open: Map<string, State>;
  /** Of those that are over. */
  readonly over: Map<string, State>;
}

export const noTasks = (): Tasks => ({ accepted: new Set(), open: new Map(), over: new Map() });

/** So many may be open at once: when the faults stop, there is only so much left to do. */
const MOST_OPEN = 120;
const SUBMITTERS = 6;
/** One in so many is submitted twice, the second time a while later: a server that was killed has forgotten its Msg-Id. */
const TWICE = 10;

/**
 * Submits tasks 1 to `count`, as callers do who try again until they hear that theirs was accepted. No new one is begun
 * once it is told to stop; those that were begun are seen through.
 */
export async function submitAll(
  deps: Wired,
  tasks: Tasks,
  count: number,
  inputOf: () => JsonObject,
  stop: AbortSignal,
): Promise<void> {
  let next = 1;
  const pause = (ms: number) => sleep(ms, undefined, { signal: stop }).catch(() => {});
  const isFull = () => [...tasks.open.values()].filter((state) => state !== "in_doubt").length >= MOST_OPEN;
  const submitter = async () => {
    while (next <= count && !stop.aborted) {
      if (isFull()) {
        await pause(50);
        continue;
      }
      const n = next++;
      const id = `e${n}`;
      const input = inputOf();
      const send = () => seenThrough(() => submit(deps, { agent: AGENT, lanes: LANES, id, input }));
      tasks.open.set(id, "dispatched");
      await send();
      tasks.accepted.add(id);
      if (n % TWICE) continue;
      await pause(3_000);
      await send();
    }
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

/** Submits fail while a server is away; the same id again is safe. */
async function seenThrough(send: () => Promise<unknown>): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      return void (await send());
    } catch (error) {
      if (failures > 100) throw error;
      await sleep(200);
    }
  }
}

/** Looks at all open tasks once. Says whether the store answered. */
export async function look({ store }: Wired, tasks: Tasks): Promise<boolean> {
  const ids = [...tasks.open.keys()].filter((id) => tasks.accepted.has(id));
  try {
    while (ids.length > 0) {
      const found = await store.getMany(ids);
      for (const one of found) {
        if (!one || !("task" in one)) continue;
        const { id, state } = one.task;
        tasks.open.set(id, state);
        if (!isFinal(one.task)) continue;
        tasks.open.delete(id);
        tasks.over.set(id, state);
      }
      ids.splice(0, Math.max(1, found.length));
    }
    return true;
  } catch {
    return false;
  }
}

/**
 * What a person does about doubts: asks the receiver, and says what it said. Only when nobody is frozen any more, because
 * a process that wakes may still send what it was about to.
 */
export async function answerDoubts(deps: Wired, tasks: Tasks, deeds: readonly Deed[]): Promise<void> {
  for (const [id, state] of tasks.open) {
    if (state !== "in_doubt") continue;
    const happened = deeds.some((deed) => deed.id === id && deed.deed === "mail");
    const receipt = { status: 200, by: "a person" };
    // One that has moved on since, or can't be reached, is looked at again.
    await resolve(deps, id, happened ? { happened, receipt } : { happened }).catch(() => {});
  }
}

/** How many messages there still are. One lane that can't be asked counts as one. */
export async function inQueues(deps: Wired): Promise<number> {
  let sum = 0;
  for (let lane = 0; lane < LANES; lane++) {
    const state = await deps.bus.state(queueOf(deps, { agent: AGENT, lane })).catch(() => undefined);
    sum += state ? state.pending + state.inFlight : 1;
  }
  return sum;
}
