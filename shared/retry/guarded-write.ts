import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import { type Deps, mark } from "../ports/deps.ts";
import type { Revision, Stored, WriteResult } from "../ports/store.ts";
import { DOCUMENT_LIMIT } from "../settings/settings.ts";
import type { Task } from "../task/document.ts";
import type { Mark } from "../task/events.ts";
import { pageHash, pageName, pageOut } from "../task/settled.ts";
import { documentText } from "../values/document-text.ts";
import { byteLength } from "../values/json.ts";
import type { Guard } from "./guards.ts";
import { pause } from "./retry.ts";
import { type Trouble, trouble } from "./trouble.ts";

/** "moot": the document is no longer one that the change applies to. */
export type Written =
  | {
      readonly kind: "written";
      readonly stored: Stored;
      /** The store answered this very write. False: it was found by its stamp, written at an unknown moment. */
      readonly answered: boolean;
    }
  | { readonly kind: "moot"; readonly stored: Stored | undefined };

/** Returns the changed document, or undefined when the change no longer applies to what is there. */
export type Change = (task: Task, mark: Mark) => Task | undefined;

/**
 * One guarded write, seen through: a refused one is applied again to what is there now, and one whose answer was
 * lost is looked for by its stamp before anything is written again. Returns only what is certain.
 */
export async function update(deps: Deps, seen: Stored, change: Change, guard: Guard): Promise<Written> {
  let current = seen;
  const stamps = new Set<string>();
  for (let refusals = 0; ; ) {
    guard();
    const own = mark(deps);
    const next = change(current.task, own);
    if (!next) return { kind: "moot", stored: current };
    stamps.add(own.stamp);
    const result = await attempt(deps, next.id, guard, () => replace(deps, next, current.revision));
    if (result.kind === "written") {
      deps.bus.announce(next);
      deps.trace?.moved(current.task, next);
      return { kind: "written", stored: result.stored, answered: true };
    }
    // One refusal is a bystander; many are a crowd, which thins out if everyone steps back.
    if (result.kind === "refused" && ++refusals > 2) await pause(deps, "bystander", refusals);
    const found = await readThrough(deps, seen.task.id, guard);
    if (found && wroteAny(found.task, stamps)) {
      deps.trace?.moved(current.task, next);
      return { kind: "written", stored: found, answered: false };
    }
    if (!found) return { kind: "moot", stored: undefined };
    current = found;
  }
}

/**
 * Creates a document, seen through in the same way: a create that was not answered is asked for again, as a store may have
 * more to do for it than the document. "moot": another document has the id.
 */
export async function create(deps: Deps, task: Task, guard: Guard): Promise<Written> {
  checkSize(task);
  for (;;) {
    const result = await attempt(deps, task.id, guard, () => deps.store.create(task));
    if (result.kind === "written") {
      deps.bus.announce(task);
      deps.trace?.moved(undefined, task);
      return { kind: "written", stored: storedAs(task, result), answered: true };
    }
    if (result.kind === "unknown") continue;
    const found = await readThrough(deps, task.id, guard);
    if (!found) continue;
    if (!wroteAny(found.task, new Set([task.stamp]))) return { kind: "moot", stored: found };
    deps.trace?.moved(undefined, task);
    return { kind: "written", stored: found, answered: false };
  }
}

/** Reads until the store answers or the guard gives up: while it is away the task is held, never run blind. */
export function readThrough(deps: Deps, id: string, guard: Guard): Promise<Stored | undefined> {
  return persist(deps, id, guard, () => deps.store.get(id));
}

/** Until the store answers or the guard gives up. For what may be asked twice. */
export async function persist<T>(
  deps: Deps,
  taskId: string,
  guard: Guard,
  ask: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const answer = await attempt(deps, taskId, guard, async () => ({
      kind: "answer" as const,
      value: await ask(),
    }));
    if (answer.kind === "answer") return answer.value;
  }
}

/**
 * One request under a guard. "unknown": the store did not answer, or refuses while a message is held; whether it did what
 * was asked nobody knows, and a pause was made. Any other error is thrown.
 */
export async function attempt<T extends { readonly kind: string }>(
  deps: Deps,
  taskId: string,
  guard: Guard,
  ask: () => Promise<T>,
): Promise<T | { readonly kind: "unknown" }> {
  guard();
  const patient = troubles.get(guard) ?? { failures: 0, trouble: trouble(deps) };
  try {
    const answer = await ask();
    patient.failures = 0;
    patient.trouble.over("store.back", { task: taskId });
    return answer;
  } catch (error) {
    const refused = isPawlError(error, "store_refused");
    if (!isPawlError(error, "store_unavailable") && !(refused && guard.holds)) throw error;
    troubles.set(guard, patient);
    const fields = { task: taskId, reason: messageOf(error) };
    if (refused) patient.trouble.met("store.refused", fields, { level: "error" });
    else patient.trouble.met("store.unavailable", fields);
    guard.retried?.(error);
    await pause(deps, "store", ++patient.failures);
    return { kind: "unknown" };
  }
}

/** By who writes: what one of them waits for is said once, not at each of its requests. */
const troubles = new WeakMap<Guard, { failures: number; readonly trouble: Trouble }>();

async function replace(
  deps: Deps,
  task: Task,
  seen: Revision,
): Promise<{ kind: "refused" } | { kind: "written"; stored: Stored }> {
  const next = lightened(await withRoom(deps, task));
  const result = await deps.store.replace(next, seen);
  return result.kind === "written" ? { kind: "written", stored: storedAs(next, result) } : result;
}

/** As it is stored now: the next write of it names its seal. */
function storedAs(task: Task, { revision, seal }: Extract<WriteResult, { kind: "written" }>): Stored {
  return { task: seal ? { ...task, seal } : task, revision };
}

/** The oldest settlements of a document that holds too many are stored beside it first. */
async function withRoom({ store }: Deps, task: Task): Promise<Task> {
  const paged = pageOut(task);
  if (!paged) return task;
  const text = JSON.stringify(paged.settled);
  await store.putPart(task.id, pageName(paged.page), text);
  return { ...paged.task, settledHash: pageHash(task.settledHash, text) };
}

function wroteAny(task: Task, stamps: ReadonlySet<string>): boolean {
  return task.history.some((entry) => stamps.has(entry.stamp));
}

/** A task without what is only for people to read: the first to go where its document would be too large. */
export function bare(task: Task): Task {
  const { logs, history, ...rest } = task;
  return {
    ...rest,
    ...(logs && { logs: { ...logs, lines: [] } }),
    history: history.map(({ error: _, ...entry }) => entry),
  } as Task;
}

/** Work comes first. */
function lightened(task: Task): Task {
  if (sizeOf(task) <= DOCUMENT_LIMIT) return task;
  const lighter = bare(task);
  checkSize(lighter);
  return lighter;
}

/** Not exact where it is surely small: a character has three bytes at most. */
function sizeOf(task: Task): number {
  const text = documentText(task);
  return text.length * 3 <= DOCUMENT_LIMIT ? text.length : byteLength(text);
}

function checkSize(task: Task): void {
  const bytes = sizeOf(task);
  if (bytes > DOCUMENT_LIMIT) {
    throw new PawlError(
      "document_too_large",
      `Task ${task.id}'s document would have ${bytes} bytes; ${DOCUMENT_LIMIT} is the most a store holds`,
    );
  }
}
