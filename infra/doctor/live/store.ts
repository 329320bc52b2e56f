import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { aliveAt, SILENT_AFTER } from "../../../shared/dispatch/alive.ts";
import { tickSeen } from "../../../shared/dispatch/cron.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import { reconciledAt } from "../../../shared/reconcile/books/reports.ts";
import type { Task } from "../../../shared/task/document.ts";
import { lastTick } from "../../../shared/task/schedule.ts";
import type { KnownAgent } from "../../agents.ts";
import { ahead, asking, type Seen } from "./ask.ts";
import { lookAtFirestore } from "./firestore.ts";
import type { Live } from "./live.ts";

/** What the store says: its clock, and the last signs of life of the functions that come by themselves. */
export async function lookAtStore(
  live: Seen,
  config: Config,
  known: readonly KnownAgent[],
  unseen: string[],
): Promise<void> {
  await using deps = await wire(config, () => {});
  const ask = asking(live);
  const before = Date.now();
  const position = await ask(`asking ${deps.store.name}`, () => deps.store.position());
  if (position) {
    live.clocks = { ...live.clocks, [deps.store.name]: ahead(position.now, before) };
    // A clock that is ahead would find everything overdue.
    live.now = Math.min(live.now, position.now);
  }
  live.overdue = (await ask("looking for due tasks", () => overdueIn(deps, live.now, known, unseen))) ?? [];
  const begunAt = Math.min(...live.queues.map(({ info }) => info.createdAt));
  const dispatched = await ask("looking for dispatch", async () => ({ at: await aliveAt(deps.store) }));
  if (dispatched && live.queues.length > 0) {
    const hasSchedules = known.some(({ schedules }) => schedules.length > 0);
    live.dispatched = { begunAt, hasSchedules, ...(dispatched.at !== undefined && { at: dispatched.at }) };
  }
  const reconciled = await ask("looking for reports", async () => ({ at: await reconciledAt(deps.store) }));
  if (reconciled && live.queues.length > 0)
    live.reconciled = { begunAt, ...(reconciled.at !== undefined && { at: reconciled.at }) };
  const isFirestore = config.store !== "nats-kv" && !config.emulatorHost;
  if (isFirestore) await lookAtFirestore(live, config, unseen);
}

const dueOf = (task: Task) => ("dueAt" in task ? task.dueAt : undefined);

async function overdueIn(
  deps: Deps,
  now: number,
  known: readonly KnownAgent[],
  unseen: string[],
): Promise<Live["overdue"]> {
  const seen = await tickSeen(deps);
  const found: { what: string; since: number }[] = [];
  for (const { name, schedules } of known) {
    for (const state of ["scheduled", "waiting"] as const) {
      const { tasks } = await deps.store.due(name, state, { after: 0, until: now - SILENT_AFTER }, 10);
      // A task that waits for a person may only be due to be told again.
      const late = tasks.find(({ task }) => (dueOf(task) ?? now) <= now - SILENT_AFTER);
      if (late) found.push({ what: `task ${late.task.id} of ${name}`, since: dueOf(late.task) ?? now });
    }
    for (const schedule of schedules) {
      const at = seen(name, schedule);
      const tick = lastTick(schedule, now - SILENT_AFTER);
      if (at === undefined)
        unseen.push(`schedule ${schedule.name} of ${name}, which no dispatcher has seen yet`);
      else if (tick !== undefined && tick > at)
        found.push({ what: `schedule ${schedule.name} of ${name}`, since: tick });
    }
  }
  return found;
}
