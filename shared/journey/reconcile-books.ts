import { splitText } from "../task/journal.ts";
import { type Period, SequenceBook } from "../task/sequences.ts";
import type { Deps } from "./deps.ts";
import type { PlannedQueue, Progress } from "./reconcile-plan.ts";
import { REPORTS } from "./reports.ts";

export type Books = ReadonlyMap<string, SequenceBook>;

/** What is to be explained of a queue. One that was made anew, or restored, begins from its first sequence. */
export function periodOf({ info, before }: PlannedQueue): Period {
  if (!before || isRewound(info, before)) return { after: 0, upTo: info.lastSeq, open: [] };
  return { after: before.upTo, upTo: info.lastSeq, open: before.open };
}

export function isRewound(info: PlannedQueue["info"], before: NonNullable<PlannedQueue["before"]>): boolean {
  return info.lastSeq < before.upTo || info.createdAt !== before.createdAt;
}

const PAGE = 500;

/**
 * Books with what lies in the streams now. This comes before any document is read: what left its stream before was
 * settled before, so the documents that are read afterwards say so.
 */
export async function openBooks(deps: Deps, queues: readonly PlannedQueue[]): Promise<Books> {
  const books = new Map<string, SequenceBook>();
  for (const planned of queues) {
    const { queue, stream, info } = planned;
    const book = new SequenceBook(periodOf(planned));
    for (let from = 1; ; ) {
      const found = await deps.bus.survivors(queue, from, PAGE);
      for (const { seq } of found) book.present(seq, seq <= info.consumer.delivered ? "in_flight" : "queued");
      const last = found.at(-1)?.seq;
      if (last === undefined || found.length < PAGE || last >= info.lastSeq) break;
      from = last + 1;
    }
    books.set(stream, book);
  }
  return books;
}

/** Stores the books beside the tasks: the names of their parts are then kept with the progress. */
export async function storeBooks(
  deps: Deps,
  books: Books,
  slot: number,
): Promise<Record<string, readonly string[]>> {
  const stored: Record<string, readonly string[]> = {};
  for (const [stream, book] of books) {
    const { classes, owners } = book.kept;
    const bytes = `${Buffer64.encode(classes)}.${Buffer64.encode(new Uint8Array(owners.buffer))}`;
    // By turns in two places: dead in the middle of it, the last ones are whole.
    const names = splitText(bytes).map((text, i) => ({ text, name: `book-${stream}-${slot % 2}-${i}` }));
    for (const { name, text } of names) await deps.store.putPart(REPORTS, name, text);
    stored[stream] = names.map(({ name }) => name);
  }
  return stored;
}

export async function loadBooks(deps: Deps, { plan, books: stored }: Progress): Promise<Books | undefined> {
  const books = new Map<string, SequenceBook>();
  for (const planned of plan.queues) {
    const texts: string[] = [];
    for (const name of stored[planned.stream] ?? [])
      texts.push((await deps.store.getPart(REPORTS, name)) ?? "");
    const [classes, owners] = texts.join("").split(".");
    if (classes === undefined || owners === undefined) return undefined;
    const bytes = Buffer64.decode(owners);
    const kept = { classes: Buffer64.decode(classes), owners: new Uint32Array(bytes.buffer) };
    books.set(planned.stream, new SequenceBook(periodOf(planned), kept));
  }
  return books;
}

/** Base64 of many bytes, piece by piece: a call with a million arguments is none. */
const Buffer64 = {
  encode: (bytes: Uint8Array): string => {
    const pieces: string[] = [];
    for (let i = 0; i < bytes.length; i += 0x8000)
      pieces.push(String.fromCharCode(...bytes.subarray(i, i + 0x8000)));
    return btoa(pieces.join(""));
  },
  decode: (text: string): Uint8Array<ArrayBuffer> => {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  },
};
