import type { MsgRequest, StoredMsg } from "@nats-io/jetstream";
import type { Bucket } from "./bucket.ts";
import { scanned } from "./scan.ts";

type Ask = (what: string, query: MsgRequest) => Promise<StoredMsg | undefined>;

/** Nobody waits for more: what is behind them is looked at by those who may read in bulk. */
const MOST = 1_000;

/**
 * Reads one message at a time, of the leader, where no consumer may be made: whoever may make one chooses where its
 * messages go, and so has the server write wherever it likes.
 */
export function walking(ask: Ask, bucket: string): Pick<Bucket, "scan"> {
  const prefix = `$KV.${bucket}.`;
  const walk = async function* (
    what: string,
    filter: string,
    { from = 1, to = Number.MAX_SAFE_INTEGER, keysOnly = false, markers = keysOnly, limit = MOST }: Range,
  ) {
    let seq = Math.max(1, from);
    for (let left = limit; left > 0; left--) {
      // The server knows it; the client's type leaves it out.
      const query = { seq, next_by_subj: prefix + filter } as { seq: number };
      const message = await ask(what, query);
      if (!message || message.seq > to) return;
      seq = message.seq + 1;
      const one = scanned(message, prefix);
      if (!one.isMarker || markers) yield one;
    }
  };
  return {
    scan: async function* (what, filters, range = {}) {
      for (const filter of filters.length > 0 ? filters : [">"]) yield* walk(what, filter, range);
    },
  };
}

type Range = NonNullable<Parameters<Bucket["scan"]>[2]>;
