import type { Settlement } from "../task/document.ts";
import { SeenHashes } from "../values/hashes.ts";
import { type Books, booksOf } from "./books/books.ts";
import type { KeptBook } from "./books/sequences.ts";
import { type Counting, NO_TALLY } from "./figures/tally.ts";
import type { Findings } from "./findings/findings.ts";
import { found, NO_FINDINGS } from "./findings/found.ts";
import type { Plan } from "./plan.ts";

/** A message that its document had settled while it was still in its stream. */
export interface Lagging extends Settlement {
  readonly task: string;
}

/** Everything that was found out so far, and that becomes the report. */
export interface Account {
  readonly plan: Plan;
  readonly books: Books;
  readonly tallies: Record<string, Counting>;
  findings: Findings;
  readonly maxSettled: Record<string, number>;
  /** Sequences that a document settled though another one had. */
  readonly twice: { readonly stream: string; readonly seq: number; readonly task: string }[];
  /** Tasks that are not over, by agent and state. */
  readonly live: Record<string, Record<string, number>>;
  /** How many tasks should have a message in a stream that the plan does not have, by its name. */
  readonly elsewhere: Record<string, number>;
  readonly lagging: Lagging[];
  /** Of these the ones that are there still: their acks were lost. */
  readonly unacked: { readonly stream: string; readonly seq: number }[];
  readonly repairs: Record<string, number>;
  documents: number;
  /** Documents that were looked at and own no sequence of the books: those that do are known by that. */
  readonly seen: SeenHashes;
  /** Tasks of which something can't be read, and how often that was tried. */
  readonly failed: Record<string, number>;
  /** Tasks that it leaves open. */
  readonly open: LeftOpen;
  /** Tasks whose holders did not answer: they are asked once more, a lease later. */
  readonly unheld: Unheld[];
  /** The shortest time that a finished task's document stays after its last message. */
  shortestKept?: number;
}

/** Tasks that this reconciliation leaves open, so far: in parts, and the lines of the next part. */
export interface LeftOpen {
  readonly parts: string[];
  lines: string[];
  chars: number;
  count: number;
}

const nothingOpen = (): LeftOpen => ({ parts: [], lines: [], chars: 0, count: 0 });

export interface Unheld {
  readonly task: string;
  readonly agent: string;
  readonly token: string;
  readonly runner: string;
  /** When its holder was asked. */
  readonly at: number;
}

export function emptyAccount(plan: Plan): Account {
  return {
    plan,
    books: booksOf(plan),
    tallies: {},
    findings: found(NO_FINDINGS, ...plan.findings),
    maxSettled: {},
    twice: [],
    live: {},
    elsewhere: {},
    lagging: [],
    unacked: [],
    repairs: {},
    documents: 0,
    seen: new SeenHashes(plan.run),
    failed: {},
    open: nothingOpen(),
    unheld: [],
  };
}

/** An account as text, to be kept beside the tasks until the reconciliation goes on. `save` tells it from others. */
export function textOf({ plan: _, books, seen, ...rest }: Account, save: string): string {
  const texts = [...books].map(([stream, { kept }]): [string, KeptText] => [
    stream,
    { classes: encoded(kept.classes), owners: encoded(bytesOf(kept.owners)), older: kept.older },
  ]);
  const kept: KeptAccount = { ...rest, save, seen: encoded(bytesOf(seen.kept)), books: texts };
  return JSON.stringify(kept);
}

/** Undefined where the text is not that of this save: it was cut off, or another reconciliation wrote over it. */
export function accountFrom(plan: Plan, text: string, save: string): Account | undefined {
  const kept = parsed(text);
  if (kept?.save !== save) return undefined;
  const { save: _, seen, books: texts, ...rest } = kept;
  const books = new Map(
    texts.map(([stream, { classes, owners, older }]): [string, KeptBook] => [
      stream,
      { classes: decoded(classes), owners: wordsOf(decoded(owners)), older },
    ]),
  );
  // One that an earlier version kept lacks what that version did not count.
  const tallies = Object.entries(rest.tallies).map(([agent, tally]): [string, Counting] => [
    agent,
    { ...(structuredClone(NO_TALLY) as Counting), ...tally },
  ]);
  return {
    ...rest,
    tallies: Object.fromEntries(tallies),
    plan,
    books: booksOf(plan, books),
    seen: new SeenHashes(plan.run, wordsOf(decoded(seen))),
  };
}

interface KeptText {
  readonly classes: string;
  readonly owners: string;
  readonly older: readonly number[];
}

interface KeptAccount extends Omit<Account, "plan" | "books" | "seen"> {
  readonly save: string;
  readonly seen: string;
  readonly books: readonly (readonly [string, KeptText])[];
}

function parsed(text: string): KeptAccount | undefined {
  try {
    return JSON.parse(text) as KeptAccount;
  } catch {
    return undefined;
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);
const wordsOf = (bytes: Uint8Array<ArrayBuffer>) => new Uint32Array(bytes.buffer);

/** Base64 of many bytes, piece by piece: a call with a million arguments is none. */
function encoded(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let i = 0; i < bytes.length; i += 0x8000)
    pieces.push(String.fromCharCode(...bytes.subarray(i, i + 0x8000)));
  return btoa(pieces.join(""));
}

function decoded(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
