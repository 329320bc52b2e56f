import {
  ClosedConnectionError,
  type Msg,
  type NatsConnection,
  PermissionViolationError,
} from "@nats-io/nats-core";
import { isOff, JetStreamAway } from "./nats-errors.ts";
import { tooOld } from "./nats-version.ts";
import { natsRequests, type Question } from "./requests.ts";

/**
 * Runs a JetStream request over the connection, and fails it as soon as its answer can't come any more. Asks nothing of a
 * server that is too old, whichever one a reconnect has led to.
 */
export interface Link {
  /** A request that the client makes. */
  <T>(request: () => Promise<T>): Promise<T>;
  /** A request of our own, which costs less. */
  ask(question: Question): Promise<Msg>;
  /** When there is a connection, to a server that is new enough; undefined where it is there now. */
  ready(): Promise<void> | undefined;
  /** Calls back when no answer from a subject can come any more, until the returned function is called. */
  watch(subject: string, fail: (error: unknown) => void): () => void;
}

/**
 * A request that was under way when the connection broke, or is made while it is broken, is not sent again after the
 * reconnect: it would sit out its whole time-out, and a lease has few of those. So one under way fails at once, and a
 * new one waits for the connection first, `timeout` at most.
 */
export function natsLink(nc: NatsConnection, timeout: number): Link {
  const requests = natsRequests(nc, timeout);
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
  const lost = () => {
    const error = new Error("the connection was lost before the answer came");
    for (const fail of underWay) fail(error);
    underWay.clear();
    requests.fail(error);
  };
  refuse();
  let known = nc.info;
  void (async () => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect") {
        back ??= Promise.withResolvers();
        lost();
      } else if (status.type === "reconnect") {
        back?.resolve();
        back = undefined;
      } else if (status.type === "error") {
        const { error } = status;
        if (error instanceof PermissionViolationError && error.operation === "publish")
          requests.refused(error.subject, error);
      }
    }
  })();
  // A connection that is closed for good says no more.
  void nc.closed().then(() => requests.fail(new ClosedConnectionError()));

  /** At once where there is a connection: what is sent without an await in between goes out together. */
  const ready = (): Promise<void> | undefined => {
    if (back) return within(back.promise, timeout).then(refuse);
    if (nc.info !== known) {
      refuse();
      known = nc.info;
    }
    return undefined;
  };
  const link = async <T>(request: () => Promise<T>): Promise<T> => {
    const connecting = ready();
    if (connecting) await connecting;
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
  const ask = async (question: Question): Promise<Msg> => {
    const connecting = ready();
    if (connecting) await connecting;
    try {
      const answer = await requests.ask(question);
      hasAnswered = true;
      return answer;
    } catch (error) {
      throw explain(error);
    }
  };
  return Object.assign(link, { ask, ready, watch: requests.watch });
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
