import { type Contract, isQueue, isWork, ms, span } from "../contract.ts";
import type { Rule } from "../rule.ts";

const isSet = (limit: number | undefined): limit is number => limit !== undefined && limit > 0;

/** Of a stream that keeps acked messages too, a message may be gone that was done. */
const less = (contract: Contract) => (isQueue(contract) ? {} : ({ severity: "warning" } as const));

/** What removes work that nobody has done, or loses it with a server. */
export const storageRules = {
  "discard-old-loses": {
    checks: "discard, where a stream of work has a limit",
    prevents:
      "When the limit is reached the oldest messages are thrown away, those that are being worked on among them; their acks are confirmed all the same.",
    severity: "error",
    mend: "Set discard to new: publishers get an error (10077), and can wait.",
    find: (contract) => {
      const { stream } = contract;
      if (!stream || !isWork(contract) || stream.discard === "new") return undefined;
      const limits = (["max_msgs", "max_bytes", "max_msgs_per_subject"] as const)
        .filter((field) => isSet(stream[field]))
        .map((field) => `${field} ${stream[field]}`);
      if (limits.length === 0) return undefined;
      return {
        field: "stream.discard",
        is: `discard is ${stream.discard ?? "not set, which is old"}, with ${limits.join(", ")}`,
        set: `discard: new${isSet(stream.max_msgs_per_subject) ? ", with discard_new_per_subject" : ""}`,
        ...less(contract),
      };
    },
  },
  "subject-limit-evicts": {
    checks: "max_msgs_per_subject without discard_new_per_subject",
    prevents: "A newer message of a subject throws the oldest one away, done or not, also with discard new.",
    severity: "error",
    mend: "Set discard to new and discard_new_per_subject: the publisher gets an error (10077).",
    find: (contract) => {
      const { stream } = contract;
      if (!stream || !isWork(contract) || !isSet(stream.max_msgs_per_subject)) return undefined;
      if (stream.discard === "new" && stream.discard_new_per_subject) return undefined;
      return {
        field: "stream.max_msgs_per_subject",
        is: `max_msgs_per_subject is ${stream.max_msgs_per_subject}, without discard_new_per_subject`,
        set: "discard: new, with discard_new_per_subject: true; or max_msgs_per_subject: -1",
        ...less(contract),
      };
    },
  },
  "max-age-loses": {
    checks: "max_age of a stream of work",
    prevents: "What has waited so long vanishes, also while it is being worked on, and nobody is told.",
    severity: "error",
    mend: "Set max_age to 0. What may be too old to be done, its consumer can see by the message's time.",
    find: (contract) => {
      const { stream } = contract;
      if (!stream?.max_age || !isWork(contract)) return undefined;
      return {
        field: "stream.max_age",
        is: `max_age is ${span(ms(stream.max_age))}`,
        set: "max_age: 0",
        ...less(contract),
      };
    },
  },
  "memory-storage": {
    checks: "where messages, and what was delivered of them, are kept",
    prevents: "A restart of the server takes all waiting work with it, or what it knew of deliveries.",
    severity: "error",
    mend: "Set storage to file. It can't be changed: make another stream, of another name.",
    find: (contract) => {
      const { stream, consumer } = contract;
      return [
        ...(stream?.storage === "memory" && isWork(contract)
          ? [{ field: "stream.storage", is: "storage is memory", set: "storage: file" }]
          : []),
        ...(consumer?.mem_storage && stream?.storage !== "memory"
          ? [{ field: "consumer.mem_storage", is: "mem_storage is true", set: "mem_storage: false" }]
          : []),
      ];
    },
  },
  "publishes-unconfirmed": {
    checks: "no_ack of a stream of work",
    prevents:
      "No publisher learns whether its message was stored: what is lost on the way is lost in silence.",
    severity: "error",
    mend: "Set no_ack to false.",
    find: (contract) =>
      contract.stream?.no_ack && isWork(contract)
        ? { field: "stream.no_ack", is: "no_ack is true", set: "no_ack: false" }
        : undefined,
  },
  "fed-by-sources": {
    checks: "sources and mirror of a stream of work",
    prevents:
      "A crash of the server copies messages again that were copied before: they are delivered twice.",
    severity: "warning",
    mend: "Publish to the stream itself.",
    find: (contract) => {
      const { stream } = contract;
      if (!stream || !isWork(contract) || !(stream.sources?.length || stream.mirror)) return undefined;
      const from = [...(stream.sources ?? []), ...(stream.mirror ? [stream.mirror] : [])].map(
        ({ name }) => name,
      );
      return { field: "stream.sources", is: `it is fed from ${from.join(", ")}`, set: "sources: none" };
    },
  },
  "one-copy-unsynced": {
    checks: "num_replicas and the server's sync_interval",
    prevents:
      "A power cut takes what was confirmed in the last two minutes: servers write to the disk that often, unless told otherwise.",
    severity: "warning",
    mend: "Keep three copies (num_replicas 3), or set sync_interval to always in the server's jetstream block.",
    find: (contract) => {
      const { stream, application } = contract;
      if (!stream || !isWork(contract) || stream.storage === "memory" || (stream.num_replicas ?? 1) > 1)
        return undefined;
      if (application.sync !== "interval") return undefined;
      return {
        field: "stream.num_replicas",
        is: `num_replicas is ${stream.num_replicas ?? 1}, and the server's sync_interval is not always`,
        set: "num_replicas: 3; or sync_interval: always",
      };
    },
  },
  "names-reused": {
    checks: "streams and consumers that were made anew under their old names",
    prevents:
      "Acks of messages from the former life are taken for those of the new one, which were never done.",
    severity: "warning",
    mend: "Put a generation into the name, and raise it instead of making a stream or consumer anew.",
    find: ({ stream, application, seen }) => {
      const set = "a name with a generation in it, such as ORDERS_g2";
      if (application.names_reused)
        return { field: "application.names_reused", is: "names_reused is true", set };
      const { gone, delivered, consumerCreated } = seen ?? {};
      if (stream?.retention !== "workqueue" || stream.max_age || stream.discard !== "new") return undefined;
      if (gone === undefined || delivered === undefined || delivered >= gone) return undefined;
      return {
        field: "consumer.name",
        is: `${gone} messages have left the stream, and its consumer, made at ${consumerCreated}, has made ${delivered} deliveries: it was made anew, or messages were removed past it`,
        set,
      };
    },
  },
} as const satisfies Record<string, Rule<Contract>>;
