import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { type Msg, headers as makeHeaders, type NatsConnection } from "@nats-io/nats-core";
import { messageOf, PawlError } from "../../errors/errors.ts";
import type { Bus, OutgoingMessage, PublishResult, StoredMessage } from "../../ports/bus.ts";
import type { Settings } from "../../settings/settings.ts";
import {
  confinedPrefix,
  consumerName,
  holderSubject,
  type Queue,
  streamName,
  subjectPrefix,
} from "../../task/names.ts";
import { headerMap, looks } from "./look.ts";
import { apiCode, busError, JetStreamAway, missing, NO_MESSAGE } from "./nats-errors.ts";
import { type Link, natsLink } from "./nats-link.ts";
import { publishAck } from "./publish-ack.ts";
import { pulls } from "./pull.ts";
import { ensureAdvisories, ensureQueue } from "./queue.ts";

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
  const jsm = await jetstreamManager(nc, { ...options, checkAPI: false });
  const link = natsLink(nc, timeout);
  const announced = announcements(nc);
  return {
    name: `JetStream at ${nc.getServer()}`,
    ensure: async (queue, how = "correct") => {
      const changes = await ensureQueue(jsm, link, queue, settings, store, how);
      return how === "correct" ? [...changes, ...(await ensureAdvisories(jsm, link, settings))] : changes;
    },
    publish: (queue, message) => publish(nc, link, queue, message),
    lookup: (queue, taskId) => lookup(jsm, link, queue, taskId),
    pull: pulls(nc, jsm, link, settings),
    state: async (queue) => {
      const runner = consumerName(queue);
      const info = await link(() => jsm.consumers.info(streamName(queue), runner)).catch((error: unknown) => {
        throw missing(error, `consumer ${runner} of ${streamName(queue)}`);
      });
      return { pending: info.num_pending, inFlight: info.num_ack_pending };
    },
    ...looks(jsm, link, settings, store),
    announce: ({ agent, id }) => announced.add(`${settings.namespace}.events.${agent}.${id}`),
    listen: (changed, id = "*") => {
      const callback = (error: Error | null, message: Msg) => {
        if (!error) changed(message.subject.split(".").at(-1) as string);
      };
      const subscription = nc.subscribe(`${settings.namespace}.events.*.${id}`, { callback });
      return () => subscription.unsubscribe();
    },
    serverId: () => nc.info?.server_id ?? "",
    answerFor: holders(nc, settings),
    isHeld: async (claim) => {
      try {
        const answer = await nc.request(holderSubject(settings, claim), claim.token, {
          timeout: Math.min(timeout, 500),
        });
        return answer.string() === "yes";
      } catch {
        return false;
      }
    },
    close: async () => {
      announced.flush();
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

/** Who looks on does not see more than so often that something has changed. */
const SEEN_EVERY = 20;

/** Each subject once in a while: a task that is over in a moment has changed several times. */
function announcements(nc: NatsConnection) {
  const subjects = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (!nc.isClosed()) for (const subject of subjects) nc.publish(subject);
    subjects.clear();
  };
  const add = (subject: string) => {
    subjects.add(subject);
    timer ??= setTimeout(flush, SEEN_EVERY);
  };
  return { add, flush };
}

/** Who is asked after claims: one subscription for all claims of an agent that this connection holds. */
function holders(nc: NatsConnection, settings: Settings): Bus["answerFor"] {
  const held = new Map<string, () => boolean>();
  const heard = new Set<string>();
  const hear = (subject: string) => {
    if (heard.has(subject)) return;
    heard.add(subject);
    // Without the right to subscribe it is called with the error alone: a successor gets no answer until there is the right.
    const callback = (error: Error | null, question: Msg) => {
      if (error) heard.delete(subject);
      else question.respond(held.get(question.string())?.() ? "yes" : "no");
    };
    nc.subscribe(subject, { callback });
  };
  return (claim, isHeld) => {
    held.set(claim.token, isHeld);
    hear(holderSubject(settings, claim));
    return () => void held.delete(claim.token);
  };
}

async function publish(
  nc: NatsConnection,
  link: Link,
  queue: Queue,
  message: OutgoingMessage,
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
  headers.set("Nats-Msg-Id", message.msgId);
  try {
    const subject = subjectPrefix(queue) + message.taskId;
    const ack = await publishAck(link, { subject, data: message.data, headers });
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
