import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { lastTick, type Schedule, tickId } from "../task/schedule.ts";
import { submit } from "./submit.ts";

const RECORD = "cron";
type Ticks = Record<string, number>;

const keyOf = (agent: string, schedule: Schedule) => `${agent}/${schedule.name}`;
const ticksIn = (record: { readonly text: string } | undefined): Ticks =>
  record ? (JSON.parse(record.text) as Ticks) : {};

/** The last tick of a schedule for which a dispatcher submitted a task; undefined where none has seen it. */
export async function tickSeen({
  store,
}: Pick<Deps, "store">): Promise<(agent: string, schedule: Schedule) => number | undefined> {
  const ticks = ticksIn(await store.getRecord(RECORD));
  return (agent, schedule) => ticks[keyOf(agent, schedule)];
}

/**
 * Submits a task for each tick that has come. Its id names the tick, so two dispatchers at once make one task, and one
 * that dies before it has written down how far it came makes no second. After a pause only the newest tick counts: an
 * agent that was away for a night is not run for every minute of it.
 */
export async function submitTicks(
  deps: Deps,
  agents: readonly { name: string; lanes: number; schedules: readonly Schedule[] }[],
): Promise<number> {
  const all = agents.flatMap((agent) => agent.schedules.map((schedule) => ({ ...agent, schedule })));
  if (all.length === 0) return 0;
  const now = deps.clock.now();
  const record = await deps.store.getRecord(RECORD);
  const before = ticksIn(record);
  // Ticks of other agents stay: a dispatcher of another version may know those agents.
  const ticks: Ticks = { ...before };
  let submitted = 0;
  for (const { name: agent, lanes, schedule } of all) {
    const key = keyOf(agent, schedule);
    const tick = lastTick(schedule, now) ?? 0;
    const last = before[key];
    // Seen for the first time: it begins now.
    ticks[key] = last ?? now;
    if (last === undefined || tick <= last) continue;
    try {
      const id = tickId(agent, schedule, tick);
      const { kind } = await submit(deps, { agent, lanes, id, input: schedule.input });
      if (kind === "accepted") submitted++;
      ticks[key] = tick;
    } catch (error) {
      deps.log("error", "cron.failed", { agent, schedule: schedule.name, reason: messageOf(error) });
    }
  }
  const text = JSON.stringify(ticks);
  // Refused: another dispatcher has written the same.
  if (text !== record?.text) await deps.store.putRecord(RECORD, text, record?.revision);
  return submitted;
}
