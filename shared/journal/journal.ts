import { Altered, isPawlError, isUnsound, PawlError } from "../errors/errors.ts";
import { type Deps, uniqueToken } from "../ports/deps.ts";
import type { Revision, StoredHead, WriteResult } from "../ports/store.ts";
import { attempt, persist } from "../retry/guarded-write.ts";
import type { Guard } from "../retry/guards.ts";
import type { Running, Task } from "../task/document.ts";
import { wasCutShort } from "../task/ends.ts";
import { byteLength, type Json, parseJson, plainJson } from "../values/json.ts";
import { minus, plus } from "./cost.ts";
import {
  type Entry,
  emptyHead,
  extended,
  fitting,
  type Head,
  type Kept,
  type Reached,
  reachedBy,
} from "./entries.ts";
import { type Logbook, logbook } from "./logbook.ts";
import { getPart, isInline, keepPart, partHashOf, splitText } from "./parts.ts";
import { redrivenEntry } from "./redriven.ts";

/** A task's journal in the hands of its holder. */
export interface Journal extends Pick<Logbook, "note" | "logs"> {
  /** The agent's version when the journal began. */
  readonly version: number;
  /** What was there when it was opened. */
  readonly entries: readonly Entry[];
  /** Nothing of it is stored, nor has been begun to be. */
  isUnwritten(): boolean;
  /** The head as it is by now. */
  head(): Head;
  /** All that is listed by now. */
  listed(): readonly Entry[];
  /** Resolves when the entry is listed. Throws `lease_lost` when another holder has opened the journal since. */
  append(entry: Entry): Promise<void>;
  /** Makes a value ready for an entry: checked, and stored beside the journal where it is large. */
  keep(value: unknown, what: string): Promise<{ kept: Kept; value: Json | undefined }>;
  read(kept: Kept): Promise<Json | undefined>;
}

const LARGEST = 16 * 1024 * 1024;

/**
 * Opens the journal of a task that is ours. The holder writes its fence to the head before it reads: from then on
 * nothing that an earlier holder still sends can be listed. Where there is certainly none yet, no head is written
 * before there is something to list, so a handler without calls costs nothing.
 */
export async function openJournal(
  deps: Deps,
  task: Running,
  version: number,
  guard: Guard,
): Promise<Journal> {
  const { id } = task;
  // What was paid for a journal that is gone, or is not read any more, was paid.
  const { spent, saved } = task;
  const fresh = { ...emptyHead(task, version, uniqueToken()), spent, saved };
  const opened = task.fresh ? undefined : await takeOver(deps, task, fresh, guard);
  const entries = opened ? await readEntries(deps, opened.head, guard) : [];
  let head = opened?.head ?? fresh;
  let revision = opened?.revision;
  const book = logbook(task, opened?.head.logs, deps.clock);

  const pending: Entry[] = [];
  const added: Entry[] = [];
  let broken: unknown;
  let isUnwritten = opened === undefined;
  /** What waits, in as few writes as it fits into. */
  const flush = async (): Promise<void> => {
    if (pending.length === 0) return;
    isUnwritten = false;
    const batch = pending.splice(0, fitting(pending));
    const { head: next, page } = extended(head, batch, uniqueToken());
    const pages = page
      ? [...next.pages, await keepPart(deps, id, "journal", JSON.stringify(page), guard)]
      : next.pages;
    const listed = await putHead(deps, book.onHead({ ...next, pages }), revision, guard);
    revision = listed.revision;
    deps.bus.announce(task);
    head = listed.head;
    added.push(...batch);
    return flush();
  };
  let lastFlush: Promise<void> = Promise.resolve();

  const journal: Journal = {
    note: book.note,
    logs: book.logs,
    version: head.version,
    entries,
    isUnwritten: () => isUnwritten && pending.length === 0,
    head: () => head,
    listed: () => [...entries, ...added],
    append: (entry) => {
      // A copy: its handler has the value too, and may change it while this is sealed and written, or with a later entry.
      pending.push(structuredClone({ ...entry, when: deps.clock.now() }));
      lastFlush = lastFlush.then(async () => {
        // What could not be listed is unknown from then on: nothing may be listed after it.
        if (broken) throw broken;
        await flush().catch((error: unknown) => {
          broken = error;
          throw error;
        });
      });
      const mine = lastFlush;
      lastFlush = mine.catch(() => {});
      return mine;
    },
    keep: async (value, what) => {
      if (value === undefined) return { kept: {}, value };
      const plain = plainJson(value, what, "result_invalid");
      const text = JSON.stringify(plain);
      if (isInline(text)) return { kept: { value: plain }, value: plain };
      const bytes = byteLength(text);
      if (bytes > LARGEST)
        throw new PawlError("step_too_large", `${what} has ${bytes} bytes; ${LARGEST} is the most`);
      const parts: string[] = [];
      for (const part of splitText(text)) parts.push(await keepPart(deps, id, "value", part, guard));
      return { kept: { parts }, value: plain };
    },
    read: async ({ value, parts }) => {
      if (!parts) return structuredClone(value);
      const texts = await Promise.all(parts.map((name) => getPart(deps, id, name, guard)));
      return parseJson(texts.join(""), `A journaled value of task ${id}`, "journal_mismatch");
    },
  };
  // Dead before it is listed, the next holder writes it: the document still says so, and the head does not.
  if (task.redriven && opened && isToForget(task, opened.head))
    await journal.append(redrivenEntry(entries, task.redriven, opened.head, wasCutShort(task)));
  return journal;
}

/** Whether the task was redriven since, and its journal does not know yet what that forgets. */
function isToForget({ redriven }: Running, head: Head): boolean {
  return redriven !== undefined && head.redriven !== redriven.dispatch;
}

/** How far a task's journal has come: what tells a crash loop from slow progress, and what its holders paid. */
export async function journalReached(deps: Deps, task: Task, guard: Guard): Promise<Reached> {
  const found = await persist(deps, task.id, guard, () => deps.store.getHead(task.id)).catch(
    (error: unknown) => {
      // An altered journal shows nothing; whoever opens it reports that it was altered.
      if (isPawlError(error, "journal_altered") || isUnsound(error)) return undefined;
      throw error;
    },
  );
  return reachedBy(task, found?.head);
}

/** For alerts and quotas: what a write has added to what its task has spent. */
export function countSpent({ meter }: Deps, { agent, meta, spent: before }: Task, { spent }: Reached): void {
  if (spent.turns === before.turns) return;
  meter.count("model_usd", { agent }, spent.usd - before.usd);
  meter.spent?.({ agent, owner: meta?.owner }, spent.usd - before.usd);
  meter.count("model_tokens", { agent, kind: "input" }, spent.inputTokens - before.inputTokens);
  meter.count("model_tokens", { agent, kind: "output" }, spent.outputTokens - before.outputTokens);
}

/** The journal as it is, without opening it. */
export async function readJournal(
  deps: Deps,
  taskId: string,
  guard: Guard,
): Promise<{ head: Head; entries: readonly Entry[] } | undefined> {
  const found = await persist(deps, taskId, guard, () => deps.store.getHead(taskId));
  return found && { head: found.head, entries: await readEntries(deps, found.head, guard) };
}

/** Reads all large values of a journal, one after the other: each must be what its name says. */
export async function checkValues(
  deps: Deps,
  taskId: string,
  entries: readonly Entry[],
  guard: Guard,
): Promise<void> {
  for (const { parts = [] } of entries as readonly Kept[])
    for (const name of parts) if (partHashOf(name) !== undefined) await getPart(deps, taskId, name, guard);
}

function reopened(head: Head, fresh: Head, task: Running): Head {
  const { fence, stamp } = fresh;
  if (head.born !== fresh.born) return fresh;
  // From scratch: what was paid stays on the book, and nothing else is known any more.
  if (head.epoch < fresh.epoch)
    return { ...fresh, spent: head.spent, saved: head.saved, ...(head.logs && { logs: head.logs }) };
  // What is there is about to be replayed, but for what a redrive forgets: the entry that says so counts the rest. Whoever
  // only waited would not have paid for it again in any case.
  const isAgain = wasCutShort(task) && !isToForget(task, head);
  const saved = isAgain ? plus(head.saved, minus(head.spent, head.forgotten)) : head.saved;
  return { ...head, fence, stamp, saved };
}

async function takeOver(deps: Deps, task: Running, fresh: Head, guard: Guard): Promise<StoredHead> {
  for (;;) {
    const found = await persist(deps, fresh.taskId, guard, () => headToOpen(deps, fresh));
    if (found && found.head.born === fresh.born && found.head.fence > fresh.fence) throw stale(fresh);
    if (found?.head.stamp === fresh.stamp) return found;
    checkWhole(task, found?.head);
    const head = found ? reopened(found.head, fresh, task) : fresh;
    const result = await persist(deps, fresh.taskId, guard, () => deps.store.putHead(head, found?.revision));
    if (result.kind === "written") return storedAs(head, result);
  }
}

/** A journal may be further than its document, never behind: one that was removed, or put back, would run its effects again. */
function checkWhole({ id, createdAt, epoch, journaled }: Running, head: Head | undefined): void {
  const count = head?.born === createdAt && head.epoch === epoch ? head.count : 0;
  if (count < journaled)
    throw new PawlError(
      "journal_altered",
      `Task ${id} has journaled ${journaled} entries, and there are ${count}: its journal was removed or put back`,
    );
}

/** The head as it is; of one that was altered and is not read any more, for the task begins from scratch, only its place. */
async function headToOpen({ store }: Deps, fresh: Head): Promise<StoredHead | undefined> {
  try {
    return await store.getHead(fresh.taskId);
  } catch (error) {
    const altered = error instanceof Altered ? (error.found as StoredHead) : undefined;
    if (!altered || !(fresh.epoch > altered.head.epoch)) throw error;
    const { spent, saved } = fresh;
    return { ...altered, head: { ...altered.head, born: fresh.born, fence: 0, spent, saved } };
  }
}

async function readEntries(deps: Deps, head: Head, guard: Guard): Promise<Entry[]> {
  const pages = await Promise.all(
    head.pages.map(async (name) => JSON.parse(await getPart(deps, head.taskId, name, guard)) as Entry[]),
  );
  return [...pages.flat(), ...head.recent];
}

/** One link of the chain, seen through. Refused, or unanswered, it is looked for by its stamp. */
async function putHead(
  deps: Deps,
  head: Head,
  first: Revision | undefined,
  guard: Guard,
): Promise<StoredHead> {
  let seen = first;
  for (;;) {
    const result = await attempt(deps, head.taskId, guard, () => deps.store.putHead(head, seen));
    if (result.kind === "written") return storedAs(head, result);
    const found = await persist(deps, head.taskId, guard, () => deps.store.getHead(head.taskId));
    if (found?.head.stamp === head.stamp) return found;
    // Left by a holder that opened it and listed nothing, or by a task of the same id that was forgotten.
    const isOurs =
      found && (found.head.born !== head.born || (found.head.count === 0 && found.head.fence < head.fence));
    if (seen === undefined && isOurs) {
      seen = found.revision;
      continue;
    }
    // Nobody but a later holder writes here: where the head is not as we left it, the task is not ours.
    if (found?.revision !== seen) throw stale(head);
  }
}

function stale({ taskId, fence }: Head): PawlError {
  return new PawlError("lease_lost", `Task ${taskId}: a holder after fence ${fence} has opened its journal`);
}

/** As it is stored now: the next write of it names its seal. */
function storedAs(head: Head, { revision, seal }: Extract<WriteResult, { kind: "written" }>): StoredHead {
  return { head: seal ? { ...head, seal } : head, revision };
}
