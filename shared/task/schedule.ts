import { Cron } from "croner";
import { messageOf } from "../errors/errors.ts";
import type { JsonObject } from "../values/json.ts";
import type { Millis } from "./document.ts";

/** A task that an agent gets again and again. */
export interface Schedule {
  /** Tells an agent's schedules apart, and is part of its tasks' ids. */
  readonly name: string;
  /** Minute, hour, day of the month, month, day of the week: "0 6 * * 1". */
  readonly cron: string;
  /** "Europe/Vienna". UTC by default. */
  readonly timezone: string;
  readonly input: JsonObject;
}

/** What is wrong with it, if anything. */
export function cronProblem({ cron, timezone }: Pick<Schedule, "cron" | "timezone">): string | undefined {
  if (cron.trim().split(/\s+/).length !== 5) return "it should have five fields, such as 0 6 * * 1";
  try {
    return new Cron(cron, { timezone, paused: true }).nextRun() ? undefined : "it never comes";
  } catch (error) {
    return messageOf(error);
  }
}

/** A schedule's newest tick up to now. A whole second more, because milliseconds are not looked at. */
export function lastTick({ cron, timezone }: Schedule, now: Millis): Millis | undefined {
  const [tick] = new Cron(cron, { timezone, paused: true }).previousRuns(1, new Date(now + 1_000));
  return tick?.getTime();
}

/** One for each tick, however many look: "cron-digest-weekly-20261116T0600". */
export function tickId(agent: string, { name }: Schedule, tick: Millis): string {
  const at = new Date(tick).toISOString().slice(0, 16).replaceAll(/[-:]/g, "");
  return `cron-${agent}-${name}-${at}`;
}
