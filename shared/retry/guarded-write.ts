import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import { type Deps, mark } from "../ports/deps.ts";
import type { Revision, Stored, WriteResult } from "../ports/store.ts";
import { DOCUMENT_LIMIT } from "../settings/settings.ts";
import type { Task } from "../task/document.ts";
import type { Mark } from "../task/events.ts";
import { pageHash, pageName, pageOut } from "../task/settled.ts";
import { byteLength } from "../values/json.ts";
import type { Guard } from "./guards.ts";
import { pause } from "./patience.ts";
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
  for (let failures = 0, refusals = 0; ; ) {
    guard();
    const own = mark(deps);
    const next = change(current.task, own);
    if (!next) return { kind: "moot", stored: current };
    stamps.add(own.stamp);
    try {
      const result = await replace(deps, next, current.revision);
      endured(next.id, guard);
      if (result.kind === "written") {
        deps.bus.announce(next);
        return { kind: "written", stored: result.stored, answered: true };
      }
      // One refusal is a bystander; many are a crowd, which thins out if everyone steps back.
      if (++refusals > 2) await pause(deps, refusals);
    } catch (error) {
      failures = await endure(deps, error, failures, seen.task.id, guard);
    }
    const found = await readThrough(deps, seen.task.id, guard);
    if (found && wroteAny(found.task, stamps)) return { kind: "written", stored: found, answered: false };
    if (!found) return { kind: "moot", stored: undefined };
    current = found;
  }
}

/** Creates a document, seen through in the same way. "moot": another document has the id. */
export async function create(deps: Deps, task: Task, guard: Guard): Promise<Written> {
  checkSize(task);
  for (let failures = 0; ; ) {
    guard();
    try {
      const result = await deps.store.create(task);
      endured(task.id, guard);
      if (result.kind === "written") {
        deps.bus.announce(task);
        return { kind: "written", stored: storedAs(task, result), answered: true };
      }
    } catch (error) {
      failures = await endure(deps, error, failures, task.id, guard);
    }
    const found = await readThrough(deps, task.id, guard);
    if (!found) continue;
    if (!wroteAny(found.task, new Set([task.stamp]))) return { kind: "moot", stored: found };
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
  for (let failures = 0; ; ) {
    guard();
    try {
      const answer = await ask();
      endured(taskId, guard);
      return answer;
    } catch (error) {
      failures = await endure(deps, error, failures, taskId, guard);
    }
  }
}

async function replace(
  deps: Deps,
  task: Task,
  seen: Revision,
): Promise<{ kind: "refused" } | { kind: "written"; stored: Stored }> {
  const next = await withRoom(deps, task);
  checkSize(next);
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
  return { ...paged.task, settledHash: await pageHash(task.settledHash, text) };
}

/** By who writes: what one of them waits for is said once, not at each of its requests. */
const troubles = new WeakMap<Guard, Trouble>();

/** Waits a while after an error that may pass, and throws any other. */
export async function endure(
  deps: Deps,
  error: unknown,
  failures: number,
  id: string,
  guard: Guard,
): Promise<number> {
  const refused = isPawlError(error, "store_refused");
  if (!isPawlError(error, "store_unavailable") && !(refused && guard.holds)) throw error;
  const own = troubles.get(guard) ?? trouble(deps);
  troubles.set(guard, own);
  const fields = { task: id, reason: messageOf(error) };
  if (refused) own.met("store.refused", fields, { level: "error" });
  else own.met("store.unavailable", fields);
  guard.retried?.(error);
  await pause(deps, failures + 1);
  return failures + 1;
}

/** What was asked of the store was answered. */
export function endured(id: string, guard: Guard): void {
  troubles.get(guard)?.over("store.back", { task: id });
}

function wroteAny(task: Task, stamps: ReadonlySet<string>): boolean {
  return task.history.some((entry) => stamps.has(entry.stamp));
}

function checkSize(task: Task): void {
  const bytes = byteLength(JSON.stringify(task));
  if (bytes > DOCUMENT_LIMIT) {
    throw new PawlError(
      "document_too_large",
      `Task ${task.id}'s document would have ${bytes} bytes; ${DOCUMENT_LIMIT} is the most a store holds`,
    );
  }
}
