import type { JetStreamManager } from "@nats-io/jetstream";
import { deadline, type Msg, type NatsConnection, nanos, type Subscription } from "@nats-io/nats-core";
import type { Bus, Delivery } from "../../ports/bus.ts";
import type { Settings } from "../../settings/settings.ts";
import { consumerName, streamName } from "../../task/names.ts";
import { deliveries } from "./delivery.ts";
import { missing, NotThere } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";
import { headersOf, inboxOf, isNobody } from "./requests.ts";

/** An answer that comes later than this after the wait at the server is lost. */
const LATE = 1_000;
/** No message, or none in time. */
const NOTHING = new Set([404, 408]);

/** Where the answer of a pull comes to. A message says only by its subscription which pull it answers. */
interface Inbox {
  readonly subject: string;
  readonly subscription: Subscription;
  /** Whose answer comes next; none between two pulls. */
  answered: ((error: Error | null, answer: Msg) => void) | undefined;
}

/**
 * Pulls of one message each. A pull is a single message to the server; its answer comes to a subscription, which the
 * lane's next pull takes over. Only a pull that was withdrawn, or had no answer, takes its subscription along: the server
 * drops a pull that nobody listens for.
 */
export function pulls(
  nc: NatsConnection,
  jsm: JetStreamManager,
  link: Link,
  settings: Settings,
): Bus["pull"] {
  const wrap = deliveries(jsm, link, settings);
  const runner = consumerName(settings);
  const prefix = jsm.getOptions().apiPrefix ?? "$JS.API";
  const idle = new Map<string, Inbox[]>();

  const open = (): Inbox => {
    const subject = inboxOf(nc);
    // Called by the client as it reads: what is thrown here would end its reading.
    const callback = (error: Error | null, answer: Msg) => {
      if (inbox.answered) inbox.answered(error, answer);
      // Asked for by a pull that was given up.
      else if (!error && answer.reply) void putBack(wrap(answer));
    };
    const inbox: Inbox = { subject, subscription: nc.subscribe(subject, { callback }), answered: undefined };
    return inbox;
  };
  /** The server closes subscriptions whose right was taken away, and one that is drained hears nothing more. */
  const isOpen = ({ subscription }: Inbox) => !subscription.isClosed() && !subscription.isDraining();
  const take = (stream: string): Inbox => {
    const left = (idle.get(stream) ?? []).filter(isOpen);
    const inbox = left.pop() ?? open();
    idle.set(stream, left);
    return inbox;
  };

  /** The consumer is gone, or its leader is away. */
  const whyNobody = async (stream: string, error: NotThere): Promise<unknown> => {
    const asked = link(async () => {
      await jsm.consumers.info(stream, runner);
      throw error;
    });
    return asked.catch((told: unknown) => told);
  };

  return (queue, waitMs, drifted) => {
    const stream = streamName(queue);
    const subject = `${prefix}.CONSUMER.MSG.NEXT.${stream}.${runner}`;
    const { promise: delivery, resolve, reject } = Promise.withResolvers<Delivery | undefined>();
    // It may fail while its owner still waits for the last ack: that is not unhandled, only not looked at yet.
    delivery.catch(() => {});
    let inbox: Inbox | undefined;
    let isOver = false;
    let stopWaiting = () => {};

    /** False where it was over before. */
    const over = (isAnswered: boolean): boolean => {
      if (isOver) return false;
      isOver = true;
      stopWaiting();
      if (inbox) inbox.answered = undefined;
      if (inbox && isAnswered && isOpen(inbox)) idle.set(stream, [...(idle.get(stream) ?? []), inbox]);
      else if (inbox && !inbox.subscription.isClosed()) inbox.subscription.unsubscribe();
      return true;
    };
    const fail = async (error: unknown) => {
      if (!over(false)) return;
      const why = error instanceof NotThere ? await whyNobody(stream, error) : error;
      reject(missing(why, `Pulling from ${stream}`));
    };
    const answered = (error: Error | null, answer: Msg) => {
      if (error) return void fail(error);
      if (answer.reply) {
        const delivered = wrap(answer, drifted);
        if (over(true)) resolve(delivered);
        return;
      }
      const status = headersOf(answer);
      if (status && NOTHING.has(status.code)) {
        if (over(true)) resolve(undefined);
      } else void fail(isNobody(answer) ? new NotThere(subject) : new Error(status?.description));
    };
    const send = () => {
      if (isOver) return;
      inbox = take(stream);
      inbox.answered = answered;
      const unwatch = link.watch(subject, (error) => void fail(error));
      const lost = () => {
        if (over(false)) resolve(undefined);
      };
      const timer = setTimeout(lost, waitMs + LATE);
      stopWaiting = () => {
        clearTimeout(timer);
        unwatch();
      };
      nc.publish(subject, JSON.stringify({ batch: 1, expires: nanos(waitMs) }), { reply: inbox.subject });
    };
    try {
      const connecting = link.ready();
      if (connecting) connecting.then(send).catch(fail);
      else send();
    } catch (error) {
      void fail(error);
    }

    return {
      delivery,
      cancel: async () => {
        // A message that is under way comes before the server's word that nothing more can.
        if (inbox && !isOver) {
          const drained = deadline(inbox.subscription.drain(), settings.requestTimeout);
          await Promise.race([drained, delivery]).catch(() => {});
        }
        if (over(false)) resolve(undefined);
      },
    };
  };
}

/** If this process slept since, the message is another's by now. */
async function putBack(delivery: Delivery): Promise<void> {
  if (await delivery.current().catch(() => false)) await delivery.nak(0).catch(() => {});
}
