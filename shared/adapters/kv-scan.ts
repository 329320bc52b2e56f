import { DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream";

/** One value of a bucket, as its stream has it. */
export interface Scanned {
  readonly key: string;
  readonly revision: number;
  readonly createdAt: number;
  text(): string;
}

const PAGE = 1_000;

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
  for (let from = Math.max(1, range.from); from <= range.to; ) {
    const { found, last } = await ask(() => page(js, bucket, filter, from, range.to));
    yield* found;
    if (last === undefined) return;
    from = last + 1;
  }
}

async function page(js: JetStreamClient, bucket: string, filter: string, from: number, to: number) {
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
    const max_messages = Math.min(pending, PAGE);
    for await (const message of await consumer.fetch({ max_messages, expires: 2_000 })) {
      if (message.seq > to) return { found };
      last = message.seq;
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
    return { found, ...(last !== undefined && { last }) };
  } finally {
    await consumer.delete().catch(() => {});
  }
}
