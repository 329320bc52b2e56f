import { PawlError } from "../errors/errors.ts";
import type { Actor } from "../ports/actor.ts";
import type { Sealer } from "../ports/sealer.ts";
import type { Millis } from "../task/document.ts";

/** What people do, as the trail calls it. A submit is not among them: the task's own document says who submitted it. */
export const operations = [
  "cancel",
  "redrive",
  "signal",
  "approve",
  "reject",
  "resolve",
  "accept",
  "reconcile",
  "token create",
  "token revoke",
  "quota set",
  "quota clear",
  "pause",
  "resume",
] as const;
export type AuditedOperation = (typeof operations)[number];

/** What is done, and to what. */
export interface Deed {
  readonly op: AuditedOperation;
  readonly task?: string;
  readonly agent?: string;
  /** The public id of the token that is made or revoked. */
  readonly token?: string;
  /** What else matters of it: a signal's name, a token's owner and scopes, whose quota and what of it. Never a value, a note or a secret. */
  readonly detail?: string;
}

/**
 * "asked" is written before anything is done; one of the others follows. "refused": nothing was done. "unknown": whether it
 * was, nobody knows. An "asked" without any of them is of a process that died: the task's history says whether it was done.
 */
export type AuditOutcome = "asked" | "done" | "refused" | "unknown";

export interface AuditFacts extends Deed {
  readonly actor: Actor;
  readonly outcome: AuditOutcome;
  /** Why it was refused: a code of docs/errors.md. */
  readonly code?: string;
  /** The entry that this one is the outcome of. */
  readonly of?: number;
}

export interface AuditEntry extends AuditFacts {
  /** 1, 2, 3, without a gap. */
  readonly n: number;
  readonly at: Millis;
  /** Unlike any other: by it a writer whose answer was lost finds its own entry. */
  readonly stamp: string;
  /** Of all this, and of the seal before it. */
  readonly seal: string;
}

/** The page that entries are added to, with where the trail begins. */
export interface Tail {
  readonly v: 1;
  /** When the trail began: a second one, after the record was lost, takes no names of the first. */
  readonly born: Millis;
  readonly page: number;
  /** The first page that is kept, and the seal of the last entry before it. */
  readonly oldest: number;
  /** When the last entry of the oldest page was written; none while that is this one. */
  readonly oldestUntil?: Millis;
  /** The seal of the entry before the first one here; empty before the first of all. */
  readonly before: string;
  readonly entries: readonly AuditEntry[];
  readonly seal: string;
}

/** A page that is full. */
export type Page = Pick<Tail, "v" | "born" | "page" | "before" | "entries">;

export const TAIL = "audit";
/** Entries of a full page: so the page of an entry follows from its number. */
export const PER_PAGE = 50;
const DETAIL_LIMIT = 300;

export const pageName = ({ born }: Pick<Tail, "born">, page: number): string => `audit-${born}-${page}`;
export const pageOf = (n: number): number => Math.floor((n - 1) / PER_PAGE) + 1;

/** What an entry's seal is made of. */
export function sealedText({ seal: _, ...entry }: AuditEntry, before: string): string {
  return `audit after ${before}\n${JSON.stringify(entry)}`;
}

export function tailText({ seal: _, ...tail }: Tail): string {
  return `audit tail\n${JSON.stringify(tail)}`;
}

export async function sealTail(sealer: Sealer, tail: Omit<Tail, "seal">): Promise<Tail> {
  return { ...tail, seal: sealer.seal(tailText({ ...tail, seal: "" })) };
}

/** In one order, and bounded: who asks for something writes what is in it. */
export async function sealEntry(
  sealer: Sealer,
  { op, task, agent, token, detail, actor, outcome, code, of }: AuditFacts,
  { n, at, stamp, before }: Pick<AuditEntry, "n" | "at" | "stamp"> & { readonly before: string },
): Promise<AuditEntry> {
  const { name, token: id, via } = actor;
  const entry = {
    n,
    at,
    actor: { name, ...(id !== undefined && { token: id }), via },
    op,
    ...(task !== undefined && { task }),
    ...(agent !== undefined && { agent }),
    ...(token !== undefined && { token }),
    ...(detail !== undefined && { detail: detail.slice(0, DETAIL_LIMIT) }),
    outcome,
    ...(code !== undefined && { code }),
    ...(of !== undefined && { of }),
    stamp,
    seal: "",
  };
  return { ...entry, seal: sealer.seal(sealedText(entry, before)) };
}

/** Only as far as nobody who reads it stumbles: whether it is as it was written, its seals say. */
export function readTail(text: string): Tail {
  const tail = parsed(text);
  const isTail = tail?.v === 1 && [tail.born, tail.page, tail.oldest].every(Number.isSafeInteger);
  if (isTail && typeof tail.before === "string" && isEntries(tail.entries)) return tail as Tail;
  throw new PawlError("audit_unreadable", `The record ${TAIL} is no audit trail of Pawl's`);
}

export function readPage(text: string): Page | undefined {
  const page = parsed(text);
  return page?.v === 1 && typeof page.before === "string" && isEntries(page.entries)
    ? (page as Page)
    : undefined;
}

function parsed(text: string): Partial<Tail> | undefined {
  try {
    return JSON.parse(text) as Partial<Tail>;
  } catch {
    return undefined;
  }
}

const isEntries = (entries: unknown): boolean =>
  Array.isArray(entries) &&
  entries.every((one) => Number.isSafeInteger(one?.n) && Number.isFinite(one?.at) && isActor(one?.actor));

const isActor = (actor: unknown): boolean => typeof (actor as Actor | undefined)?.name === "string";
