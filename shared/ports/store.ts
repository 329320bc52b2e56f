import type { Task } from "../task/document.ts";
import type { SettledPage } from "../task/settled.ts";
import type { SweptState } from "../task/sweep.ts";

/** Opaque: what a guarded write must have seen last. */
export type Revision = string;

export interface Stored {
  readonly task: Task;
  readonly revision: Revision;
}

/** "refused": the document is not what the writer saw. Nothing was written. */
export type WriteResult =
  | { readonly kind: "written"; readonly revision: Revision }
  | { readonly kind: "refused" };

/**
 * Where task documents live. Reads see every finished write (a stale read could prolong a lease that is lost).
 * Every method throws `store_unavailable` when it can't tell whether the store did what was asked,
 * and `store_refused` when it certainly did not and asking again won't help.
 */
export interface TaskStore {
  /** For people: which store this is, and where. */
  readonly name: string;
  get(id: string): Promise<Stored | undefined>;
  create(task: Task): Promise<WriteResult>;
  replace(task: Task, seen: Revision): Promise<WriteResult>;
  /** Tasks in the state whose `sweepAt` is later than `after` and not later than `until`, the longest due first. */
  due(
    agent: string,
    state: SweptState,
    range: { after: number; until: number },
    limit: number,
  ): Promise<Stored[]>;
  /** Stores a page of old settlements; a page that is already there has the same content and is left alone. */
  putPage(page: SettledPage): Promise<void>;
  getPage(taskId: string, page: number): Promise<SettledPage | undefined>;
  close(): Promise<void>;
}
