import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Notice } from "../ports/notify.ts";
import type { Stored } from "../ports/store.ts";
import { update } from "../retry/guarded-write.ts";
import { whilePatient } from "../retry/patience.ts";
import { pauseAfter } from "../retry/retry.ts";
import type { Failed, InDoubt, Task, Untold, Waiting } from "../task/document.ts";
import { apply } from "../task/transitions.ts";
import type { Json } from "../values/json.ts";

/** After about a day nobody is there to be told. */
const MOST_TRIES = 30;

type WithNews = (Waiting | InDoubt | Failed) & { readonly untold: Untold };

/**
 * Tells people that a task failed, is in doubt, or waits for them: at least once, under an id that stays the same. The
 * try is written down first, so that two sweeps seldom tell the same, and a sweep that dies is followed by another.
 */
export async function notifyPeople(deps: Deps, stored: Stored): Promise<boolean> {
  const { notify, clock, meter } = deps;
  const isDue = (task: Task): task is WithNews =>
    "untold" in task && task.untold !== undefined && task.untold.dueAt <= clock.now();
  const guard = whilePatient(deps, `Task ${stored.task.id}`);
  const told = (againAt?: number) => (task: Task, own: Parameters<typeof apply>[2]) =>
    isNewsOf(task, stored) ? apply(task, { type: "told", ...(againAt && { againAt }) }, own) : undefined;
  if (!notify || !isDue(stored.task)) return false;
  const { id, agent } = stored.task;
  const { tries } = stored.task.untold;
  const againAt = clock.now() + pauseAfter("webhook", tries + 1);
  const begun = await update(
    deps,
    stored,
    (task, own) => (isDue(task) ? told(againAt)(task, own) : undefined),
    guard,
  );
  if (begun.kind === "moot") return false;
  try {
    await notify(noticeOf(stored.task));
    meter.count("webhooks", { agent, as: "taken" });
  } catch (error) {
    meter.count("webhooks", { agent, as: "failed" });
    deps.log("warn", "webhook.failed", { task: id, tries: tries + 1, reason: messageOf(error) });
    if (tries + 1 < MOST_TRIES) return false;
    deps.log("error", "webhook.given-up", { task: id, tries: tries + 1 });
  }
  await update(deps, begun.stored, told(), guard);
  return true;
}

function isNewsOf(task: Task, stored: Stored): boolean {
  return "untold" in task && task.untold?.stamp === (stored.task as Failed).untold?.stamp;
}

function noticeOf(task: WithNews): Notice {
  const { id, agent, state, attempts, spent, meta, untold } = task;
  const labels = meta?.labels && { labels: { ...meta.labels } };
  const common = { id, agent, state, attempts, usd: spent.usd, ...labels };
  const data: Json =
    task.state === "failed"
      ? { ...common, error: { code: task.error.code, message: task.error.message } }
      : task.state === "in_doubt"
        ? { ...common, effect: task.effect }
        : { ...common, waitingFor: [...task.waitingFor], summary: task.summary ?? null };
  return { id: `${id}.${untold.stamp}`, type: `task.${state}`, at: untold.at, data };
}
