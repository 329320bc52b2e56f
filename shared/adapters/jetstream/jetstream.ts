import {
  type Consumer,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { type Msg, headers as makeHeaders, type NatsConnection } from "@nats-io/nats-core";
import { messageOf, PawlError } from "../../errors/errors.ts";
import type {
  Bus,
  Delivery,
  HeldClaim,
  OutgoingMessage,
  PublishResult,
  Pull,
  StoredMessage,
} from "../../ports/bus.ts";
import type { Fields } from "../../ports/queue-fields.ts";
import type { Settings } from "../../settings/settings.ts";
import { confinedPrefix, consumerName, type Queue, streamName, subjectPrefix } from "../../task/names.ts";
import { headerMap, looks } from "./look.ts";
import { apiCode, busError, GONE, JetStreamAway, missing, NO_MESSAGE } from "./nats-errors.ts";
import { type Link, natsLink } from "./nats-link.ts";
import { ensureAdvisories, ensureQueue, unsafeDrift } from "./queue.ts";

const STORE_FAILED = 10077;

/**
 * The bus over a connection that the caller made, by TCP or by WebSocket, and closes. `store` names where documents are:
 * a queue belongs to one store. `isConfined`: to an agent, by an account of its own that reaches what it needs under a prefix.
 */
export async function jetstreamBus(
  nc: NatsConnection,
  settings: Settings,
  store: string,
  { isConfined = false }: { readonly isConfined?: boolean } = {},
): Promise<Bus> {
  const timeout = settings.requestTimeout;
  const options = { timeout, ...(isConfined && { apiPrefix: confinedPrefix(settings) }) };
  const js = jetstream(nc, options);
  const jsm = await jetstreamManager(nc, { ...options, checkAPI: false });
  const link = natsLink(nc, timeout);
  const consumers = consumersOf(js, consumerName(settings));
  return {
    name: `JetStream at ${nc.getServer()}`,
    ensure: async (queue, how = "correct") => {
      const changes = await ensureQueue(jsm, link, queue, settings, store, how);
      return how === "correct" ? [...changes, ...(await ensureAdvisories(jsm, link, settings))] : changes;
    },
    publish: (queue, message) => publish(js, nc, link, queue, message, timeout),
    lookup: (queue, taskId) => lookup(jsm, link, queue, taskId),
    pull: (queue, waitMs, drifted = () => {}) => {
      const wrap = (message: JsMsg) => delivery(message, jsm, nc, link, settings, drifted);
      return pull(consumers, link, queue, waitMs, wrap);
    },
    state: async (queue) => {
      const runner = consumerName(queue);
      const info = await link(() => jsm.consumers.info(streamName(queue), runner)).catch((error: unknown) => {
        throw missing(error, `consumer ${runner} of ${streamName(queue)}`);
      });
      return { pending: info.num_pending, inFlight: info.num_ack_pending };
    },
    ...looks(jsm, link, settings, store),
    announce: ({ agent, id }) => {
      if (!nc.isClosed()) nc.publish(`${settings.namespace}.events.${agent}.${id}`);
    },
    listen: (changed, id = "*") => {
      const callback = (error: Error | null, message: Msg) => {
        if (!error) changed(message.subject.split(".").at(-1) as string);
      };
      const subscription = nc.subscribe(`${settings.namespace}.events.*.${id}`, { callback });
      return () => subscription.unsubscribe();
    },
    serverId: () => nc.info?.server_id ?? "",
    answerFor: (claim, isHeld) => {
      // Without the right to subscribe it is called with the error alone; a successor then gets no answer.
      const callback = (error: Error | null, question: Msg) => {
        if (!error) question.respond(isHeld() ? "yes" : "no");
      };
      const subscription = nc.subscribe(holderSubject(settings, claim), { callback });
      return () => subscription.unsubscribe();
    },
    isHeld: async (claim) => {
      try {
        const answer = await nc.request(holderSubject(settings, claim), "", {
          timeout: Math.min(timeout, 500),
        });
        return answer.string() === "yes";
      } catch {
        return false;
      }
    },
    close: async () => {
      await nc.close();
    },
    ...(isConfined && leftToOthers),
  };
}

/**
 * What an identity that is confined to an agent may not do, and others do for it: to make and correct queues, for whoever may
 * make a stream or a consumer has the server write where it likes; and to look for those that lanes which went have left.
 */
const leftToOthers: Pick<Bus, "ensure" | "queues"> = { ensure: async () => [], queues: async () => [] };

function holderSubject({ namespace }: Settings, { agent, token }: HeldClaim): string {
  return `${namespace}.holders.${agent}.${token}`;
}

async function publish(
  js: JetStreamClient,
  nc: NatsConnection,
  link: Link,
  queue: Queue,
  message: OutgoingMessage,
  timeout: number,
): Promise<PublishResult> {
  const what = `Publishing task ${message.taskId}`;
  const room = (nc.info?.max_payload ?? 1024 * 1024) - 4096;
  if (message.data.length > room) {
    throw new PawlError(
      "bus_refused",
      `${what}: its message has ${message.data.length} bytes; the NATS server takes ${room} (its max_payload, less headers)`,
    );
  }
  const headers = makeHeaders();
  for (const [name, value] of Object.entries(message.headers)) headers.set(name, value);
  try {
    const options = { msgID: message.msgId, headers, timeout };
    const subject = subjectPrefix(queue) + message.taskId;
    const ack = await link(() => js.publish(subject, message.data, options));
    return { kind: ack.duplicate ? "duplicate" : "stored", seq: ack.seq };
  } catch (error) {
    if (apiCode(error) === STORE_FAILED) {
      // One code for two things: this task has a message there, or the stream is full.
      if (/per subject/.test(messageOf(error))) return { kind: "occupied" };
      throw new PawlError("queue_full", `${what}: ${streamName(queue)} is full (${messageOf(error)})`, {
        cause: error,
      });
    }
    if (error instanceof JetStreamAway) {
      throw new PawlError(
        "queue_missing",
        `${what}: no stream takes ${subjectPrefix(queue)}*. If there is none, start \`pawl run ${queue.agent}\` once, which creates it; or its cluster is choosing a leader, or this user's account may not use JetStream`,
        { cause: error },
      );
    }
    throw busError(error, what);
  }
}

async function lookup(
  jsm: JetStreamManager,
  link: Link,
  queue: Queue,
  taskId: string,
): Promise<StoredMessage | undefined> {
  const subject = subjectPrefix(queue) + taskId;
  try {
    const found = await link(() => jsm.streams.getMessage(streamName(queue), { last_by_subj: subject }));
    return found ? { seq: found.seq, headers: headerMap(found.header) } : undefined;
  } catch (error) {
    if (apiCode(error) === NO_MESSAGE) return undefined;
    throw missing(error, `Looking up ${subject}`);
  }
}

interface Consumers {
  open(stream: string): Promise<Consumer>;
  forget(stream: string): void;
}

/** Consumers by stream, asked for once and after a failure: a pull itself is then a single message. */
function consumersOf(js: JetStreamClient, consumer: string): Consumers {
  const opened = new Map<string, Promise<Consumer>>();
  return {
    open: (stream) => {
      const known = opened.get(stream) ?? js.consumers.get(stream, consumer);
      opened.set(stream, known);
      return known;
    },
    forget: (stream) => void opened.delete(stream),
  };
}

function pull(
  consumers: Consumers,
  link: Link,
  queue: Queue,
  waitMs: number,
  delivered: (message: JsMsg) => Delivery,
): Pull {
  const what = `Pulling from ${streamName(queue)}`;
  const cancelled = Promise.withResolvers<undefined>();
  let isCancelled = false;
  let stopFetch: (() => Promise<unknown>) | undefined;
  const fetched = async (): Promise<Delivery | undefined> => {
    try {
      const consumer = await link(() => consumers.open(streamName(queue)));
      const messages = await consumer.fetch({ max_messages: 1, expires: waitMs });
      if (isCancelled) await messages.close();
      stopFetch = () => messages.close().catch(() => {});
      // Asked of the link once more: a reconnect since may have led to a server that is too old.
      for await (const message of messages) return link(async () => delivered(message));
      return undefined;
    } catch (error) {
      consumers.forget(streamName(queue));
      throw missing(error, what);
    }
  };
  const outcome = Promise.race([fetched(), cancelled.promise]);
  // It may fail while its owner still waits for the last ack: that is not unhandled, only not looked at yet.
  outcome.catch(() => {});
  return {
    delivery: outcome,
    cancel: async () => {
      isCancelled = true;
      await stopFetch?.();
      cancelled.resolve(undefined);
    },
  };
}

function delivery(
  message: JsMsg,
  jsm: JetStreamManager,
  nc: NatsConnection,
  link: Link,
  settings: Settings,
  drifted: (drift: string) => void,
): Delivery {
  const { info } = message;
  // The class has it, its interface leaves it out; an ack can be confirmed again only by a request to this subject.
  const { reply } = message as JsMsg & { reply: string };
  /** A request to the reply subject: its answer means that the consumer's leader has taken the word. */
  const say = async (word: string) => {
    try {
      await link(() => nc.request(reply, word, { timeout: settings.requestTimeout }));
    } catch (error) {
      throw busError(error, `${word.split(" ")[0]} for sequence ${info.streamSequence} of ${info.stream}`);
    }
  };
  return {
    subject: message.subject,
    data: message.data,
    headers: headerMap(message.headers),
    queue: info.stream,
    seq: info.streamSequence,
    redelivered: info.deliveryCount > 1,
    deliveries: info.deliveryCount,
    working: () => say("+WPI"),
    current: async () => {
      try {
        const now = await link(() => jsm.consumers.info(info.stream, info.consumer));
        const drift = unsafeDrift(now.config as unknown as Fields, settings);
        if (drift) drifted(drift);
        return now.delivered.consumer_seq <= info.deliverySequence;
      } catch (error) {
        if (GONE.has(apiCode(error) ?? 0)) return false;
        throw busError(error, `Asking for consumer ${info.consumer} of ${info.stream}`);
      }
    },
    ack: () => say("+ACK"),
    nak: (delayMs) => say(delayMs > 0 ? `-NAK {"delay": ${Math.ceil(delayMs) * 1_000_000}}` : "-NAK"),
  };
}
