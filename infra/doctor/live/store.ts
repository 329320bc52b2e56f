import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { tickSeen } from "../../../shared/dispatch/cron.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import { reconciledAt } from "../../../shared/reconcile/books/reports.ts";
import type { Task } from "../../../shared/task/document.ts";
import { lastTick } from "../../../shared/task/schedule.ts";
import type { KnownAgent } from "../../agents.ts";
import { ahead, asking, type Seen } from "./ask.ts";
import { lookAtFirestore } from "./firestore.ts";
import type { Live } from "./live.ts";

/** The function comes every minute: what waits longer than this, nobody has looked at. */
const SILENT = 180_000;

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
      const { tasks } = await deps.store.due(name, state, { after: 0, until: now - SILENT }, 10);
      // A task that waits for a person may only be due to be told again.
      const late = tasks.find(({ task }) => (dueOf(task) ?? now) <= now - SILENT);
      if (late) found.push({ what: `task ${late.task.id} of ${name}`, since: dueOf(late.task) ?? now });
    }
    for (const schedule of schedules) {
      const at = seen(name, schedule);
      const tick = lastTick(schedule, now - SILENT);
      if (at === undefined)
        unseen.push(`schedule ${schedule.name} of ${name}, which no dispatcher has seen yet`);
      else if (tick !== undefined && tick > at)
        found.push({ what: `schedule ${schedule.name} of ${name}`, since: tick });
    }
  }
  return found;
}
