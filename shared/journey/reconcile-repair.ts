import type { Findings } from "../task/findings.ts";
import { queueNamed } from "../task/names.ts";
import type { Deps } from "./deps.ts";
import type { Account } from "./reconcile.ts";
import { isRewound } from "./reconcile-books.ts";
import { dispatchDue } from "./sweep.ts";

/** Clocks of machines that are well. */
const CLOCKS_APART = 5_000;

/** Settled messages that are still there, well after their holder said its last word. */
export async function ackLags(deps: Deps, { plan, lagging }: Account) {
  const messages: { stream: string; seq: number }[] = [];
  let findings: Findings["named"] = [];
  for (const { queue: stream, seq, at, task } of lagging) {
    const planned = plan.queues.find((one) => one.stream === stream);
    if (!planned || (planned.before && isRewound(planned.info, planned.before))) continue;
    const [there] = await deps.bus.survivors(planned.queue, seq, 1);
    // Only the very message that was settled: a stream that was made anew has others under the same numbers.
    const isSame = there?.seq === seq && there.at <= at + CLOCKS_APART && there.subject.endsWith(`.${task}`);
    if (!isSame) continue;
    messages.push({ stream, seq });
    const { agent } = planned.queue;
    const detail = `task ${task} settled it at ${new Date(at).toISOString()}`;
    findings = [...findings, { kind: "ack_lag", subject: `${stream}#${seq}`, agent, detail }];
  }
  return { messages, findings };
}

/** Only what any runner or dispatcher would do too. */
export async function repair(
  deps: Deps,
  findings: Findings,
  lagging: readonly { stream: string; seq: number }[],
  lanes: Readonly<Record<string, number>>,
): Promise<Record<string, number>> {
  const repairs: Record<string, number> = {};
  for (const { stream, seq } of lagging) {
    const queue = queueNamed(stream, deps.settings.namespace);
    if (!queue) continue;
    await deps.bus.remove(queue, seq);
    repairs.acks_repeated = (repairs.acks_repeated ?? 0) + 1;
  }
  const stuck = findings.named.filter(({ kind }) => kind === "orphan" || kind === "overdue");
  const placing = { ...deps, lanesOf: (agent: string) => lanes[agent] };
  for (const agent of new Set(stuck.map((one) => one.agent))) {
    const dispatched = await dispatchDue(placing, agent, undefined, { lanes: lanes[agent] ?? 1 });
    if (dispatched > 0) repairs.tasks_dispatched = (repairs.tasks_dispatched ?? 0) + dispatched;
  }
  return repairs;
}
