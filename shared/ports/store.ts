import type { Head } from "../journal/entries.ts";
import type { Millis, Running, Seal, State, Task } from "../task/document.ts";
import type { SweptState } from "../task/due.ts";

/** Opaque: what a guarded write must have seen last. */
export type Revision = string;

export interface Stored {
  readonly task: Task;
  readonly revision: Revision;
}

export interface StoredHead {
  readonly head: Head;
  readonly revision: Revision;
}

export interface TaskFilter {
  readonly agent?: string;
  /** Tasks of one of these agents. */
  readonly agents?: readonly string[];
  /** Submitted by this owner. */
  readonly owner?: string;
  readonly state?: State;
  /** In one of these states. */
  readonly states?: readonly State[];
}

/** What a filter lets through, for stores that ask no database. */
export function isListed(task: Task, { agent, agents, owner, state, states }: TaskFilter): boolean {
  if (states && !states.includes(task.state)) return false;
  if ((agent ?? task.agent) !== task.agent || (state ?? task.state) !== task.state) return false;
  return (agents?.includes(task.agent) ?? true) && (owner === undefined || task.meta?.owner === owner);
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** Where the next page begins; none after the last. */
  readonly cursor?: string;
  /** What lies between them and can't be read, so that nobody knows whether the filter would let it through. */
  readonly unreadable?: readonly Unread[];
  /** How many documents were looked at to find these, where that may be more. */
  readonly looked?: number;
}

/** Something under a task's id that can't be read as its document, and why. */
export interface Unread {
  readonly key: string;
  readonly why: string;
}

/** A place in the order of all writes, and the time: both the server's own, so no writer's clock is in them. */
export interface Position {
  readonly cursor: string;
  readonly now: Millis;
}

/** What lies under a key, which is its task's id unless somebody put it there. */
export type Found =
  | {
      readonly key: string;
      readonly revision: Revision;
      readonly task: Task;
      /** What queries look for and the document says otherwise: they find it where it is not, or not at all. */
      readonly differs?: string;
      /** What shows that another hand changed it, where the store seals. */
      readonly altered?: string;
    }
  | {
      readonly key: string;
      readonly revision: Revision;
      /** Why it can't be read. */
      readonly unreadable: string;
    };

export interface ChangePage {
  /** Each once, as it is now. */
  readonly documents: readonly Found[];
  /** Where to go on from, also after the last page: what is written from then on comes next. */
  readonly cursor: string;
  /** The end was reached, as it was when the page was asked for. */
  readonly isLast: boolean;
}

export interface DuePage {
  readonly tasks: readonly Stored[];
  /** There may be more: it is full, or as much as may be held at once. */
  readonly isCut: boolean;
}

/** How much lies in something that has an end. */
export interface Fill {
  readonly bytes: number;
  readonly limit: number;
}

/** A document outside of the tasks. */
export interface StoredRecord {
  readonly text: string;
  readonly revision: Revision;
}

export interface PartRecord extends StoredRecord {
  /** Whose own part it is in: whoever has that agent's identity may have written anything into it. */
  readonly agent?: string;
}

/** "refused": the document is not what the writer saw. Nothing was written. */
export type WriteResult =
  | { readonly kind: "written"; readonly revision: Revision; readonly seal?: Seal }
  | { readonly kind: "refused" };

/** A claim, in the order of claims: by its task's birth (an id may be used again), then by its fence. */
export type Claim = Pick<Running, "id" | "agent" | "createdAt" | "fence" | "token">;

/**
 * Where task documents live. Reads see every finished write (a stale read could prolong a lease that is lost), or
 * there is `attest`.
 * Every method throws `store_unavailable` when it can't tell whether the store did what was asked,
 * and `store_refused` when it certainly did not and asking again won't help.
 * What lies there and is no document throws `Unreadable` where it was asked for by its id, and nowhere else: one bad
 * document must not stop whoever looks at many.
 */
export interface TaskStore {
  /** For people: which store this is, and where. */
  readonly name: string;
  /**
   * It has some agents' documents only: its records and texts are its own, and Pawl's books are out of its reach. What has
   * to be decided by them is left to whoever has them.
   */
  readonly isPart?: boolean;
  /** How many documents are best listed at once by whoever wants all of them. */
  readonly pageSize: number;
  get(id: string): Promise<Stored | undefined>;
  create(task: Task): Promise<WriteResult>;
  replace(task: Task, seen: Revision): Promise<WriteResult>;
  /**
   * Only where a read may be stale, and so proves nothing. Writes the claim to its task's register, which only ever
   * moves to a later claim, once most copies have taken it. Returns what to pass as `seen` the next time, or undefined
   * where a later claim stands there.
   */
  attest?(claim: Claim, seen?: Revision): Promise<Revision | undefined>;
  /** Tasks in the state whose `sweepAt` is later than `after` and not later than `until`, the longest due first. */
  due(
    agent: string,
    state: SweptState,
    range: { after: number; until: number },
    limit: number,
  ): Promise<DuePage>;
  /**
   * A page of tasks, the last changed first. It is never more than may be held at once, so it may be short, or empty,
   * with a cursor to go on from.
   */
  list(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage>;
  /** How many tasks a filter lets through, up to so many. Only where that costs less than listing them. */
  count?(filter: TaskFilter, most: number): Promise<number>;
  position(): Promise<Position>;
  /**
   * Documents that were written after a place, the longest ago first; without one, all that there are, in any order. One
   * that is written while somebody pages through moves to the end and comes again, so going on to the last page misses
   * none; one may also come again unchanged, at the same revision. A page is never more than may be held at once: it may
   * be short, or empty, and not the last. After a place in a store that is gone, made anew or set back, all come.
   *
   * Firestore finds what it wrote the time into, as every writer of Pawl lets it: a document of an earlier version, or one
   * that was written past Pawl, comes only among all of them.
   */
  changes(after: string | undefined, limit: number): Promise<ChangePage>;
  /**
   * What lies under these ids, in their order; undefined where there is nothing. Of many, or large ones, only the first so
   * many, at least one: ask again for the rest.
   */
  getMany(ids: readonly string[]): Promise<readonly (Found | undefined)[]>;
  getHead(taskId: string): Promise<StoredHead | undefined>;
  /** Guarded like a task. Without a revision seen: only if there is none. */
  putHead(head: Head, seen?: Revision): Promise<WriteResult>;
  /**
   * What is too much for a task's document, stored beside it before the document names it. It goes with the task. The
   * last write stands: a document that was restored from a backup stores its next page under a name that is taken.
   */
  putPart(taskId: string, name: string, text: string): Promise<void>;
  getPart(taskId: string, name: string): Promise<string | undefined>;
  /** Earlier versions kept reports and tokens as parts of ids that no task can have: nothing else removes those. */
  removeParts(taskId: string, isOld: (name: string) => boolean): Promise<void>;
  /**
   * Removes finished tasks whose `expiresAt` is not after `now`, each with all that it owns: journal, parts, entries of
   * indexes. At most so many; says how many, and fewer than `limit` when there are no more or enough was looked at.
   * One that is redriven at the same moment stays whole. Killed at any point, a later call removes what is left.
   */
  expire(now: number, limit: number): Promise<number>;
  /**
   * Named documents of Pawl's own: counters, checkpoints, tokens. Guarded like a head: without a revision seen a record is
   * made only if there is none, with one it is replaced only if nobody has written it since. At most what fits a document.
   * `agent`: it lies with that agent's documents, where these have a place of their own, so that its runner can read it.
   */
  getRecord(name: string, agent?: string): Promise<StoredRecord | undefined>;
  putRecord(name: string, text: string, seen?: Revision, agent?: string): Promise<WriteResult>;
  /** The record of that name in each of its parts, where it has parts whose writers keep records of their own. */
  getRecords?(name: string): Promise<readonly PartRecord[]>;
  /**
   * Named texts of Pawl's own that nobody guards: reports, and what a reconciliation keeps to go on from. The last write
   * stands; whoever must know that a text is the one that was meant keeps its hash in a record. One text is at most what
   * fits a document: more is stored in pieces.
   */
  putText(name: string, text: string): Promise<void>;
  getText(name: string): Promise<string | undefined>;
  /** Texts that are written anew meanwhile stay. */
  removeTexts(isOld: (name: string) => boolean): Promise<void>;
  /**
   * How many tasks that may still run are where agents' own identities do not reach, up to so many. Only where they may have
   * been left there when agents were given buckets of their own.
   */
  left?(most: number): Promise<number>;
  /** How full that is where an agent's documents are; undefined where it has no end. Only where something may have one. */
  usage?(agent: string): Promise<Fill | undefined>;
  close(): Promise<void>;
}
