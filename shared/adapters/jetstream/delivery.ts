import type { JetStreamManager } from "@nats-io/jetstream";
import type { Msg } from "@nats-io/nats-core";
import type { Delivery } from "../../ports/bus.ts";
import type { Fields } from "../../ports/queue-fields.ts";
import type { Settings } from "../../settings/settings.ts";
import { headerMap } from "./look.ts";
import { apiCode, busError, GONE } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";
import { unsafeDrift } from "./queue.ts";
import { headersOf } from "./requests.ts";

/** Messages of a consumer as deliveries. `drifted` is told what is unsafe about the consumer, when one asks about it. */
export function deliveries(jsm: JetStreamManager, link: Link, settings: Settings) {
  return (message: Msg, drifted: (drift: string) => void = () => {}): Delivery => {
    const reply = message.reply as string;
    const { stream, consumer, deliveries, streamSeq, consumerSeq } = deliveryOf(reply);
    /** A request to the reply subject: its answer means that the consumer's leader has taken the word. */
    const say = async (word: string) => {
      try {
        await link.ask({ subject: reply, data: word });
      } catch (error) {
        throw busError(error, `${word.split(" ")[0]} for sequence ${streamSeq} of ${stream}`);
      }
    };
    return {
      subject: message.subject,
      data: message.data,
      headers: headerMap(headersOf(message)),
      queue: stream,
      seq: streamSeq,
      redelivered: deliveries > 1,
      deliveries,
      working: () => say("+WPI"),
      current: async () => {
        try {
          const now = await link(() => jsm.consumers.info(stream, consumer));
          const drift = unsafeDrift(now.config as unknown as Fields, settings);
          if (drift) drifted(drift);
          return now.delivered.consumer_seq <= consumerSeq;
        } catch (error) {
          if (GONE.has(apiCode(error) ?? 0)) return false;
          throw busError(error, `Asking for consumer ${consumer} of ${stream}`);
        }
      },
      ack: () => say("+ACK"),
      nak: (delayMs) => say(delayMs > 0 ? `-NAK {"delay": ${Math.ceil(delayMs) * 1_000_000}}` : "-NAK"),
    };
  };
}

/**
 * What a message's reply subject says of its delivery: `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer
 * sequence>.<time>.<pending>`, in newer servers with `<domain>.<account>` after ACK and more at the end.
 */
function deliveryOf(reply: string) {
  const all = reply.split(".");
  const [stream = "", consumer = "", ...numbers] = all.slice(all.length > 9 ? 4 : 2);
  const [deliveries = 0, streamSeq = 0, consumerSeq = 0] = numbers.map(Number);
  return { stream, consumer, deliveries, streamSeq, consumerSeq };
}
