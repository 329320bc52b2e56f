import { dispatchDue, hasMessage } from "../../dispatch/sweep.ts";
import { isPawlError } from "../../errors/errors.ts";
import { pauseOf } from "../../pause/pause.ts";
import type { KeptMessage } from "../../ports/bus.ts";
import { CLOCKS_IN_STEP } from "../../settings/clocks.ts";
import { timing } from "../../settings/settings.ts";
import type { Settlement, Task } from "../../task/document.ts";
import { queueNamed } from "../../task/names.ts";
import type { Account } from "../account.ts";
import { isRewound } from "../books/books.ts";
import type { Finding, Findings } from "../findings/findings.ts";
import { found, kindOf, mended } from "../findings/found.ts";
import { askAgain, type Pace, type Step } from "../pace.ts";
import { isOverdue } from "./examine.ts";
import { ifUnsound } from "./gather.ts";

const MOST_LAGGING = 1_000;

/** A document has settled a message. One that has just been settled is on its way out. */
export function noteLag({ deps }: Pace, account: Account, task: string, entry: Settlement): void {
  const { plan, books, lagging } = account;
  const isLate = plan.at - entry.at >= 2 * deps.settings.ackWait;
  if (isLate && books.get(entry.queue)?.isPresent(entry.seq) && lagging.length < MOST_LAGGING)
    lagging.push({ ...entry, task });
}

/** Messages of a stream that an earlier report explained: their documents need not have been written since. */
export async function lagSince(
  pace: Pace,
  account: Account,
  stream: string,
  explained: readonly KeptMessage[],
): Promise<void> {
  for (let i = 0; i < explained.length && account.lagging.length < MOST_LAGGING; ) {
    const ids = explained.slice(i).map(({ subject }) => subject.slice(subject.lastIndexOf(".") + 1));
    const answers = await askAgain(pace, () => pace.deps.store.getMany(ids));
    for (const [j, answer] of answers.entries()) {
      if (!answer || "unreadable" in answer || answer.altered !== undefined) continue;
      const { id, settled } = answer.task;
      const entry = settled.find(({ queue, seq }) => queue === stream && seq === explained[i + j]?.seq);
      if (!entry) continue;
      noteLag(pace, account, id, entry);
      account.books.get(stream)?.explain(entry.seq, entry.outcome, id);
    }
    i += Math.max(1, answers.length);
  }
}

/** Whether a settled message is there still, well after its holder said its last word. False after the last one. */
export async function lookForLag(pace: Pace, account: Account, at: number): Promise<boolean> {
  const { plan, lagging, unacked } = account;
  const one = lagging[at];
  if (!one) return false;
  const { queue: stream, seq, at: settledAt, task } = one;
  const planned = plan.queues.find((other) => other.stream === stream);
  if (!planned || (planned.before && isRewound(planned.info, planned.before))) return true;
  const [there] = await askAgain(pace, () => pace.deps.bus.survivors(planned.queue, seq, 1)).catch(
    ifGone([]),
  );
  // Only the very message that was settled: a stream that was made anew has others under the same numbers.
  const isSame =
    there?.seq === seq && there.at <= settledAt + CLOCKS_IN_STEP && there.subject.endsWith(`.${task}`);
  if (!isSame) return true;
  unacked.push({ stream, seq });
  const { agent } = planned.queue;
  const detail = `task ${task} settled it at ${new Date(settledAt).toISOString()}`;
  account.findings = found(account.findings, {
    kind: "ack_lag",
    subject: `${stream}#${seq}`,
    agent,
    detail,
  });
  return true;
}

/** The stream is gone, and the message with it. */
function ifGone<T>(answer: T): (error: unknown) => T {
  return (error) => {
    if (isPawlError(error, "queue_gone")) return answer;
    throw error;
  };
}

/** A short wait, so that what was found out is kept in time. */
const SHORT_WAIT = 2_000;

/** Asks a holder once more that did not answer, a lease after it was asked first. */
export async function askHolder(pace: Pace, account: Account, at: number): Promise<Step> {
  const { deps, stop } = pace;
  const one = account.unheld[at];
  if (!one) return "over";
  const rest = one.at + timing(deps.settings).leaseTime - deps.clock.now();
  if (rest > 0) {
    await deps.clock.sleep(Math.min(rest, SHORT_WAIT), stop);
    return { cursor: String(at) };
  }
  const next = { cursor: String(at + 1) };
  if (await deps.bus.isHeld(one)) return next;
  const task = (await askAgain(pace, () => deps.store.get(one.task)).catch(ifUnsound))?.task;
  // It has gone on meanwhile.
  if (task?.state !== "running" || task.token !== one.token) return next;
  // Its next holder waits for somebody to resume the agent, which a finding of its own says.
  if (await askAgain(pace, () => pauseOf(deps.store, one.agent))) return next;
  const detail = `${one.runner} claimed it and does not answer`;
  account.findings = found(account.findings, { kind: "unheld", subject: one.task, agent: one.agent, detail });
  return next;
}

/** Whether anything can be mended. */
export function isStuck({ unacked, findings }: Account): boolean {
  return unacked.length > 0 || stuckAgents(findings).length > 0;
}

/** Deletes a message whose ack was lost: only what any runner would do too. False after the last one. */
export async function repeatAck(pace: Pace, account: Account, at: number): Promise<boolean> {
  const { unacked, repairs } = account;
  const one = unacked[at];
  if (!one) return false;
  const { stream, seq } = one;
  const queue = queueNamed(stream, pace.deps.settings.namespace);
  if (!queue) return true;
  await askAgain(pace, () => pace.deps.bus.remove(queue, seq));
  repairs.acks_repeated = (repairs.acks_repeated ?? 0) + 1;
  account.findings = mended(account.findings, "ack_lag", `${stream}#${seq}`);
  return true;
}

/** What a sweep may look at: the rest is the dispatch function's, every minute. */
const MOST_SWEPT = 5_000;

/** Dispatches what is stuck of an agent: only what any dispatcher would do too. False after the last one. */
export async function dispatchStuck(
  { deps, stop, mostCalls }: Pace,
  account: Account,
  lanes: Readonly<Record<string, number>>,
  at: number,
): Promise<boolean> {
  const { repairs, plan } = account;
  const agent = stuckAgents(account.findings)[at];
  if (agent === undefined) return false;
  const onDispatched = (task: Task) => {
    repairs.tasks_dispatched = (repairs.tasks_dispatched ?? 0) + 1;
    const wasOrphan = task.state === "dispatched" || task.state === "running";
    const kind = wasOrphan ? "orphan" : isOverdue(task, plan.at) ? "overdue" : undefined;
    if (kind) account.findings = mended(account.findings, kind, task.id);
  };
  // A task that is dispatched costs the store a few calls.
  const limits = { lanes: lanes[agent] ?? 1, most: Math.min(MOST_SWEPT, mostCalls / 4), onDispatched };
  const placing = { ...deps, lanesOf: (name: string) => lanes[name] };
  await dispatchDue(placing, agent, stop, limits);
  return true;
}

/**
 * Whether a stuck task goes on, though it was not seen to be dispatched: another dispatcher was faster, or this one was
 * cut off before it was kept. False after the last one.
 */
export async function lookIfMended(pace: Pace, account: Account, at: number): Promise<boolean> {
  const { deps } = pace;
  const one = stuckIn(account.findings)[at];
  if (!one) return false;
  if (one.mended) return true;
  const there = await askAgain(pace, () => deps.store.get(one.subject)).catch(ifUnsound);
  if (!there || isOverdue(there.task, account.plan.at)) return true;
  const { task } = there;
  const isCarried = task.state === "dispatched" || task.state === "running";
  if (isCarried && !(await askAgain(pace, () => hasMessage(deps, task)).catch(ifGone(false)))) return true;
  account.findings = mended(account.findings, one.kind, one.subject);
  return true;
}

const stuckIn = ({ named }: Findings): Finding[] =>
  named.filter(({ kind }) => kindOf(kind).mendedBy === "dispatch");

function stuckAgents(findings: Findings): string[] {
  return [...new Set(stuckIn(findings).map(({ agent }) => agent))].sort();
}
