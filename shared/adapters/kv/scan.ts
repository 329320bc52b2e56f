import { type ConsumerInfo, DeliverPolicy, type JetStreamClient, type StoredMsg } from "@nats-io/jetstream";

/** One value of a bucket, as its stream has it. */
export interface Scanned {
  readonly key: string;
  readonly revision: number;
  /** When it was written and when it was read: both by the server's clock. */
  readonly writtenAt: number;
  readonly readAt: number;
  readonly bytes: number;
  /** The key was deleted, and this says so. */
  readonly isMarker: boolean;
  text(): string;
}

export interface ScanRange {
  readonly from?: number;
  readonly to?: number;
  /** No texts, and with markers. */
  readonly keysOnly?: boolean;
  /** Keys that were deleted are among them: their markers are there. */
  readonly markers?: boolean;
  /** So many are wanted at most. */
  readonly limit?: number;
  /** So many may be held at once: as many as fit, where nobody has said. */
  readonly atOnce?: number;
}

/** How a bucket is read in bulk. */
export interface Reading {
  readonly js: JetStreamClient;
  readonly bucket: string;
  ask<T>(work: () => Promise<T>): Promise<T>;
}

/** The newest value of a key, by the leader. */
export type Get = (key: string) => Promise<Scanned | undefined>;

/** Read at once: few at first, and as many as this much text allows when it is known how long they are. */
const FIRST = 16;
const MOST = 5_000;
const MOST_BYTES = 16_000_000;
/** What a message without a text takes. */
const OVERHEAD = 1_000;
/** So often nothing may come of what the server says is there: it may have been written anew, further on. */
const SILENT = 3;
/** So many keys are asked for at once. */
const MOST_KEYS = 128;

/** How long a value is that is left out. */
const SIZE = "Nats-Msg-Size";

const fitting = (count: number, bytes: number, most: number) =>
  Math.max(1, Math.min(most, Math.floor((MOST_BYTES * count) / (bytes + OVERHEAD * count))));

/**
 * Reads the values of a bucket that keeps one per key, in the order of their last writes: many in one go, where a get
 * for each would take a round trip. Keys that are gone are left out.
 *
 * Without filters all keys are read. Told one, the server counts all keys of the bucket that it lets through, however few are
 * read: whoever wants a few of many reads all that lies between them.
 */
export async function* scan(
  reading: Reading,
  filters: readonly string[],
  range: ScanRange = {},
): AsyncGenerator<Scanned> {
  const { from: first = 1, to = Number.MAX_SAFE_INTEGER } = range;
  let left = range.limit ?? Number.MAX_SAFE_INTEGER;
  for (
    let from = Math.max(1, first), size = range.atOnce ?? (range.keysOnly ? MOST : FIRST), silent = 0;
    from <= to;
  ) {
    const most = Math.min(size, left, to - from + 1);
    const { found, next, count, bytes } = await reading.ask(() => page(reading, filters, range, from, most));
    yield* found;
    left -= found.length;
    if (next === undefined || left === 0) return;
    silent = next === from ? silent + 1 : 0;
    // What is not delivered must not pass for gone: its index entry, or its journal, would be removed.
    if (silent === SILENT) throw new Error("the server does not deliver what it says is there");
    if (count > 0) size = fitting(count, bytes, MOST);
    from = next;
  }
}

/** A message that was asked for by itself: its reader's clock stands for the server's. */
export function scanned({ seq, subject, header, data, timestamp }: StoredMsg, prefix: string): Scanned {
  return {
    key: subject.slice(prefix.length),
    revision: seq,
    writtenAt: Date.parse(timestamp),
    readAt: Date.now(),
    bytes: data.length,
    isMarker: header?.has("KV-Operation") ?? false,
    text: () => new TextDecoder().decode(data),
  };
}

export interface Picked {
  /** The keys that were asked for. */
  readonly keys: readonly string[];
  /** The values of those keys that exist. */
  readonly found: ReadonlyMap<string, Scanned>;
}

/**
 * Reads the values of these keys, each named once, in pieces of what may be held at once. Each by a request of its own: of a
 * consumer with so many filters the server compares all keys of the bucket with all of them.
 */
export async function* pick(get: Get, keys: readonly string[]): AsyncGenerator<Picked> {
  for (let from = 0, size = FIRST; from < keys.length; ) {
    const piece = keys.slice(from, from + size);
    const there = await Promise.all(piece.map(get));
    const found = new Map(there.flatMap((one) => (one && !one.isMarker ? [[one.key, one]] : [])));
    yield { keys: piece, found };
    const bytes = [...found.values()].reduce((sum, one) => sum + one.bytes, 0);
    from += piece.length;
    size = fitting(piece.length, bytes, MOST_KEYS);
  }
}

interface Page {
  readonly found: readonly Scanned[];
  /** Where to go on from; none where nothing is left. */
  readonly next?: number;
  readonly count: number;
  readonly bytes: number;
}

async function page(
  { js, bucket }: Reading,
  filters: readonly string[],
  { to = Number.MAX_SAFE_INTEGER, keysOnly = false, markers = keysOnly }: ScanRange,
  from: number,
  size: number,
): Promise<Page> {
  const prefix = `$KV.${bucket}.`;
  const consumer = await js.consumers.get(`KV_${bucket}`, {
    ...(filters.length > 0 && { filter_subjects: filters.map((filter) => prefix + filter) }),
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    headers_only: keysOnly,
  });
  const found: Scanned[] = [];
  let next: number | undefined = from;
  let count = 0;
  let bytes = 0;
  try {
    // The client's type leaves out the time.
    const { num_pending, ts } = (await consumer.info(true)) as ConsumerInfo & { ts: string };
    if (num_pending === 0) return { found, count, bytes };
    const readAt = Date.parse(ts);
    const max_messages = Math.min(num_pending, size);
    for await (const message of await consumer.fetch({ max_messages, expires: 2_000 })) {
      if (message.seq > to) return { found, count, bytes };
      count++;
      bytes += message.data.length;
      next = message.info.pending > 0 ? message.seq + 1 : undefined;
      const isMarker = message.headers?.has("KV-Operation") ?? false;
      if (isMarker && !markers) continue;
      found.push({
        key: message.subject.slice(prefix.length),
        revision: message.seq,
        writtenAt: message.info.timestampNanos / 1_000_000,
        readAt,
        bytes: keysOnly ? Number(message.headers?.get(SIZE)) : message.data.length,
        isMarker,
        text: () => message.string(),
      });
    }
    return { found, count, bytes, ...(next !== undefined && { next }) };
  } finally {
    await consumer.delete().catch(() => {});
  }
}
