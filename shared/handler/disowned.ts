import { resolve } from "../dispatch/operate.ts";
import { isPawlError, messageOf } from "../errors/errors.ts";
import { type Known, known } from "../journal/entries.ts";
import { type Journal, readJournal } from "../journal/journal.ts";
import type { Deps } from "../ports/deps.ts";
import { persist } from "../retry/guarded-write.ts";
import type { Guard } from "../retry/guards.ts";
import { whilePatient } from "../retry/patience.ts";
import { retry } from "../retry/retry.ts";
import type { Running, Task } from "../task/document.ts";
import { questionOf } from "../task/signals.ts";
import { sha256 } from "../values/json.ts";

/**
 * A holder that stored an effect's intent, and lost its lease before it began, can write no journal any more; but it
 * knows that the effect did not happen, and never will by its hand. It says so beside the journal, under its own fence,
 * so that it speaks of no other holder's try. Whoever opens the journal later finds it there; a task that is in doubt
 * about this very try already goes on.
 */
export async function disown(deps: Deps, task: Running, key: string, tries: number): Promise<void> {
  const { id, fence } = task;
  try {
    const name = await noteName(task, key, tries, fence);
    // Nobody waits for it, and a person would have to be asked: the store may be away for long.
    const say = async () => {
      await deps.store.putPart(id, name, "unbegun");
      await clearDoubt(deps, id);
    };
    await retry(deps, "witness", say, { mayPass: isPawlError });
  } catch (error) {
    deps.log("warn", "effect.unbegun-unsaid", { task: id, effect: key, reason: messageOf(error) });
  }
}

/** Writes into a journal that was just opened which of its open effects never began, by the word of who had begun to. */
export async function heedWitnesses(
  deps: Deps,
  task: Running,
  journal: Journal,
  guard: Guard,
): Promise<void> {
  for (const [key, intent] of known(journal.entries)) {
    if (intent.kind !== "effect" || intent.state !== "open") continue;
    if (await persist(deps, task.id, guard, () => isDisowned(deps, task, key, intent)))
      await journal.append({ kind: "undone", key, why: "its holder lost the lease before it began" });
  }
}

/** A task in doubt about an effect that never began goes on without a person. */
export async function clearDoubt(deps: Deps, id: string): Promise<void> {
  const task = (await deps.store.get(id))?.task;
  if (task?.state !== "in_doubt") return;
  const journal = await readJournal(deps, id, whilePatient(deps, `Task ${id}`));
  const intent = journal && known(journal.entries).get(task.effect);
  if (intent?.tries !== task.tries) return;
  // Its holder may have written so into the journal, while the doubt was written on what was known of it before.
  const isUnbegun = intent.state === "open" && (await isDisowned(deps, task, task.effect, intent));
  if (intent.state !== "undone" && !isUnbegun) return;
  const question = questionOf(task);
  await resolve(deps, id, { happened: false }, { effect: task.effect, ...(question && { question }) });
  deps.log("info", "effect.unbegun", { task: id, effect: task.effect });
}

async function isDisowned(
  { store }: Pick<Deps, "store">,
  task: Task,
  key: string,
  intent: Known,
): Promise<boolean> {
  if (intent.fence === undefined) return false;
  const name = await noteName(task, key, intent.tries, intent.fence);
  return (await store.getPart(task.id, name)) !== undefined;
}

/** The name of a note. It is of one life of the task's id: a later task of the same id has other notes. */
async function noteName({ createdAt }: Task, key: string, tries: number, fence: number): Promise<string> {
  return `unbegun-${sha256(`${createdAt}/${key}/${tries}/${fence}`).slice(0, 40)}`;
}
