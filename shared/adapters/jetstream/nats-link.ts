import type { NatsConnection } from "@nats-io/nats-core";
import { isOff, JetStreamAway } from "./nats-errors.ts";
import { tooOld } from "./nats-version.ts";

/**
 * Runs a JetStream request over the connection, and fails it as soon as its answer can't come any more. Asks nothing of a
 * server that is too old, whichever one a reconnect has led to.
 */
export type Link = <T>(request: () => Promise<T>) => Promise<T>;

/**
 * A request that was under way when the connection broke, or is made while it is broken, is not sent again after the
 * reconnect: it would sit out its whole time-out, and a lease has few of those. So one under way fails at once, and a
 * new one waits for the connection first, `timeout` at most.
 */
export function natsLink(nc: NatsConnection, timeout: number): Link {
  const underWay = new Set<(error: unknown) => void>();
  let back: PromiseWithResolvers<void> | undefined;
  let hasAnswered = false;
  const refuse = () => {
    const problem = tooOld(nc);
    if (problem) throw problem;
  };
  /** Seconds of an election look like JetStream switched off. Only a server that never had it is taken at its word. */
  const explain = (error: unknown) => {
    const isTold = nc.info !== undefined && !nc.info.jetstream && !hasAnswered;
    return isOff(error) && !isTold ? new JetStreamAway(error) : error;
  };
  refuse();
  void (async () => {
    for await (const { type } of nc.status()) {
      if (type === "disconnect") {
        back ??= Promise.withResolvers();
        for (const fail of underWay) fail(new Error("the connection was lost before the answer came"));
        underWay.clear();
      } else if (type === "reconnect") {
        back?.resolve();
        back = undefined;
      }
    }
  })();

  return async (request) => {
    if (back) await within(back.promise, timeout);
    refuse();
    return new Promise((resolve, reject) => {
      underWay.add(reject);
      request()
        .then(
          (answer) => {
            hasAnswered = true;
            resolve(answer);
          },
          (error: unknown) => reject(explain(error)),
        )
        .finally(() => underWay.delete(reject));
    });
  };
}

async function within(connected: Promise<void>, timeout: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("there is no connection")), timeout);
  });
  try {
    await Promise.race([connected, late]);
  } finally {
    clearTimeout(timer);
  }
}
