import { isPawlError } from "../task/errors.ts";
import { type Findings, found } from "../task/findings.ts";
import { queueNamed } from "../task/names.ts";
import type { Account } from "./reconcile-account.ts";
import { isRewound } from "./reconcile-books.ts";
import { type Pace, patiently } from "./reconcile-pace.ts";
import { dispatchDue } from "./sweep.ts";

/** Clocks of machines that are well. */
const CLOCKS_APART = 5_000;

/** Whether a settled message is there still, well after its holder said its last word. False after the last one. */
export async function lookForLag(pace: Pace, account: Account, at: number): Promise<boolean> {
  const { plan, lagging, unacked } = account;
  const one = lagging[at];
  if (!one) return false;
  const { queue: stream, seq, at: settledAt, task } = one;
  const planned = plan.queues.find((other) => other.stream === stream);
  if (!planned || (planned.before && isRewound(planned.info, planned.before))) return true;
  const [there] = await patiently(pace, () => pace.deps.bus.survivors(planned.queue, seq, 1)).catch(none);
  // Only the very message that was settled: a stream that was made anew has others under the same numbers.
  const isSame =
    there?.seq === seq && there.at <= settledAt + CLOCKS_APART && there.subject.endsWith(`.${task}`);
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

/** Its stream is gone, and the message with it. */
function none(error: unknown): [] {
  if (isPawlError(error, "bus_refused")) return [];
  throw error;
}

/** Whether anything can be mended. */
export function isStuck({ unacked, findings }: Account): boolean {
  return unacked.length > 0 || stuckAgents(findings).length > 0;
}

/** Deletes a message whose ack was lost: only what any runner would do too. False after the last one. */
export async function repeatAck(pace: Pace, { unacked, repairs }: Account, at: number): Promise<boolean> {
  const one = unacked[at];
  if (!one) return false;
  const queue = queueNamed(one.stream, pace.deps.settings.namespace);
  if (!queue) return true;
  await patiently(pace, () => pace.deps.bus.remove(queue, one.seq));
  repairs.acks_repeated = (repairs.acks_repeated ?? 0) + 1;
  return true;
}

/** What a sweep may look at: the rest is the dispatch function's, every minute. */
const MOST_SWEPT = 5_000;

/** Dispatches what is stuck of an agent: only what any dispatcher would do too. False after the last one. */
export async function dispatchStuck(
  { deps, stop, mostCalls }: Pace,
  { findings, repairs }: Account,
  lanes: Readonly<Record<string, number>>,
  at: number,
): Promise<boolean> {
  const agent = stuckAgents(findings)[at];
  if (agent === undefined) return false;
  // A task that is dispatched costs the store a few calls.
  const limits = { lanes: lanes[agent] ?? 1, most: Math.min(MOST_SWEPT, mostCalls / 4) };
  const placing = { ...deps, lanesOf: (name: string) => lanes[name] };
  const dispatched = await dispatchDue(placing, agent, stop, limits);
  if (dispatched > 0) repairs.tasks_dispatched = (repairs.tasks_dispatched ?? 0) + dispatched;
  return true;
}

function stuckAgents({ named }: Findings): string[] {
  const stuck = named.filter(({ kind }) => kind === "orphan" || kind === "overdue");
  return [...new Set(stuck.map(({ agent }) => agent))].sort();
}
