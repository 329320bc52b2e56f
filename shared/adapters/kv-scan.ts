import { DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream";

/** One value of a bucket, as its stream has it. */
export interface Scanned {
  readonly key: string;
  readonly revision: number;
  readonly createdAt: number;
  text(): string;
}

/** Read at once: few at first, and as many as this much text allows when it is known how long they are. */
const FIRST = 100;
const MOST = 1_000;
const MOST_BYTES = 16_000_000;

/**
 * Reads the values of a bucket that keeps one per key, in the order of their last writes: many in one go, where a get
 * for each would take a round trip. Keys that are gone are left out.
 */
export async function* scan(
  js: JetStreamClient,
  bucket: string,
  filter: string,
  range: { from: number; to: number },
  ask: <T>(work: () => Promise<T>) => Promise<T>,
): AsyncGenerator<Scanned> {
  for (let from = Math.max(1, range.from), size = FIRST; from <= range.to; ) {
    const { found, last, bytes = 0 } = await ask(() => page(js, bucket, filter, from, range.to, size));
    yield* found;
    if (last === undefined) return;
    size = Math.max(10, Math.min(MOST, Math.floor((MOST_BYTES * size) / (bytes + 1))));
    from = last + 1;
  }
}

async function page(
  js: JetStreamClient,
  bucket: string,
  filter: string,
  from: number,
  to: number,
  size: number,
): Promise<{ found: Scanned[]; last?: number; bytes?: number }> {
  const prefix = `$KV.${bucket}.`;
  const consumer = await js.consumers.get(`KV_${bucket}`, {
    filter_subjects: prefix + filter,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
  });
  const found: Scanned[] = [];
  try {
    const { num_pending: pending } = await consumer.info(true);
    if (pending === 0) return { found };
    let last: number | undefined;
    let bytes = 0;
    const max_messages = Math.min(pending, size);
    for await (const message of await consumer.fetch({ max_messages, expires: 2_000 })) {
      if (message.seq > to) return { found };
      last = message.seq;
      bytes += message.data.length;
      const isGone = message.headers?.has("KV-Operation");
      if (!isGone)
        found.push({
          key: message.subject.slice(prefix.length),
          revision: message.seq,
          createdAt: message.info.timestampNanos / 1_000_000,
          text: () => message.string(),
        });
    }
    // Fewer than it said there were: what is missing was written anew meanwhile, behind the end or further on.
    return { found, bytes, ...(last !== undefined && { last }) };
  } finally {
    await consumer.delete().catch(() => {});
  }
}
