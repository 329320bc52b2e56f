import { jetstream, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";

/** A server's streams as they lay there, for a version to come: documents, journals, messages, each at its sequence. */
export interface Kept {
  readonly version: string;
  readonly namespace: string;
  readonly streams: readonly {
    readonly config: Partial<StreamConfig>;
    readonly messages: readonly {
      readonly seq: number;
      readonly subject: string;
      readonly headers: readonly (readonly [string, string])[];
      readonly text: string;
    }[];
  }[];
}

export async function keep(nc: NatsConnection): Promise<Kept["streams"]> {
  const jsm = await jetstreamManager(nc);
  const streams = [];
  for await (const { config, state } of jsm.streams.list()) {
    const messages = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await jsm.streams.getMessage(config.name, { seq }).catch(() => null);
      if (!message) continue;
      const { subject, header } = message;
      const given = header.keys().flatMap((key) => header.values(key).map((value) => [key, value] as const));
      // What a write expected was so then; the ones before it are not kept.
      const lasting = given.filter(([key]) => !/^Nats-Expected/.test(key));
      messages.push({ seq, subject, headers: lasting, text: message.string() });
    }
    const { metadata: _, ...rest } = config;
    streams.push({ config: rest, messages });
  }
  return streams;
}

/** Revisions of documents are sequences, and messages name them: everything comes back at its own. */
export async function putBack(nc: NatsConnection, { streams }: Kept): Promise<void> {
  const [jsm, js] = [await jetstreamManager(nc), jetstream(nc)];
  for (const { config, messages } of streams) {
    await jsm.streams.add(config as StreamConfig & { name: string });
    const filler = (config.subjects?.[0] ?? "").replace(/[*>]$/, "filler");
    let next = 1;
    for (const { seq, subject, headers: given, text } of messages) {
      for (; next < seq; next++) {
        await js.publish(filler, "");
        await jsm.streams.purge(config.name as string, { filter: filler });
      }
      const all = headers();
      for (const [key, value] of given) all.append(key, value);
      const { seq: now } = await js.publish(subject, text, { headers: all });
      if (now !== seq) throw new Error(`${subject} is sequence ${now} and was ${seq}`);
      next = seq + 1;
    }
  }
}
