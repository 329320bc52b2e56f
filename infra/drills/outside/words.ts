import type { NatsConnection } from "@nats-io/nats-core";
import { type Queue, streamName } from "../../../shared/task/names.ts";

/** One word that a runner sent about a delivery, as the server saw it. */
export interface Word {
  readonly at: number;
  readonly queue: string;
  readonly word: string;
  readonly seq: number;
  readonly delivery: number;
}

/** Listens to every word about a queue's messages: the only way to prove that a runner stayed silent. */
export function hearWords(nc: NatsConnection, queue: Queue, words: Word[] = []): Word[] {
  const stream = streamName(queue);
  nc.subscribe("$JS.ACK.>", {
    callback: (_, message) => {
      const tokens = message.subject.split(".");
      // $JS.ACK.<stream>.<consumer>.<deliveries>.<seq>…, or with a domain and an account before the stream
      const at = tokens.length === 9 ? 4 : 6;
      if (tokens[at - 2] !== stream) return;
      const word = message.string().split(" ")[0] ?? "";
      words.push({
        at: Date.now(),
        queue: stream,
        word,
        delivery: Number(tokens[at]),
        seq: Number(tokens[at + 1]),
      });
    },
  });
  return words;
}
