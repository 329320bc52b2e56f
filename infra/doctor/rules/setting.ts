import { isEnough, LEAST_SERVER } from "../../../shared/adapters/jetstream/nats-version.ts";
import { type Contract, ms, span } from "../contract.ts";
import type { Rule } from "../rule.ts";

/** No time that anybody means. */
const LEAST = 1_000_000;

const STREAM_TIMES = ["max_age", "duplicate_window"] as const;
const CONSUMER_TIMES = ["ack_wait", "inactive_threshold", "idle_heartbeat", "max_expires"] as const;

/** The server, the platform, and mistakes in what was written down. */
export const settingRules = {
  "server-too-old": {
    checks: "the server's version",
    prevents:
      "Before 2.10 a confirmed ack is not on the disk yet: finished messages come back after a crash, and some are never delivered again.",
    severity: "error",
    mend: "Upgrade the server.",
    find: ({ server }) =>
      server && !isEnough(server)
        ? { field: "server", is: `the server is ${server}`, set: `nats-server ${LEAST_SERVER} or newer` }
        : undefined,
  },
  "advisories-uncaptured": {
    checks: "who takes the server's word that it gave a message up",
    prevents:
      "The message stays in the stream and is never delivered again; the server says so once, when the next pull comes, to whoever listens at that moment.",
    severity: "error",
    mend: "Capture $JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.> (and MSG_TERMINATED.>) with a stream of its own, and make dead letters of what it has.",
    find: ({ application: { dead_letters } }) => {
      if (dead_letters !== "none" && dead_letters !== "subscription") return undefined;
      return {
        field: "application.dead_letters",
        is:
          dead_letters === "none"
            ? "nobody takes advisories"
            : "no stream captures advisories: what is said while nobody listens is lost",
        set: "dead_letters: stream",
        ...(dead_letters === "subscription" && { severity: "warning" as const }),
      };
    },
  },
  "platform-ends-work": {
    checks: "the platform's time limit against the longest work, where nothing hands off",
    prevents: "Work that takes longer is cut off every time, begun again from the start, and paid for again.",
    severity: "error",
    mend: "Store what was done and let another go on before the time is over, or use a platform with more time.",
    find: ({ application: { platform_limit, longest_work, hands_off } }) => {
      if (!platform_limit || !longest_work || hands_off || longest_work < platform_limit) return undefined;
      return {
        field: "application.platform_limit",
        is: `work takes up to ${span(longest_work)}, and the platform ends it after ${span(platform_limit)}`,
        set: `hands_off: true; or longest_work: below ${span(platform_limit)}`,
      };
    },
  },
  "not-nanoseconds": {
    checks: "times of less than a millisecond",
    prevents:
      "In JetStream's JSON a number is a time in nanoseconds: 30 is no time at all, and every message comes again at once.",
    severity: "error",
    mend: 'Write 30000000000 for 30 s; here also "30s".',
    find: ({ stream, consumer }) => {
      const times = [
        ...STREAM_TIMES.map((field) => [`stream.${field}`, stream?.[field]] as const),
        ...CONSUMER_TIMES.map((field) => [`consumer.${field}`, consumer?.[field]] as const),
        ...(consumer?.backoff ?? []).map((one) => ["consumer.backoff", one] as const),
      ];
      return times.flatMap(([field, time = 0]) =>
        time > 0 && time < LEAST
          ? [
              {
                field,
                is: `${field.split(".")[1]} is ${time}, which is ${span(ms(time))}`,
                set: `${time * 1_000_000_000} for ${time} s`,
              },
            ]
          : [],
      );
    },
  },
  "unknown-field": {
    checks: "the names of fields",
    prevents:
      "A server before 2.12 drops what it does not know without a word: what you meant does not hold.",
    severity: "error",
    mend: "Correct the name, and compare what the server echoes.",
    find: ({ unknown }) =>
      unknown.map(({ part, field, meant }) => ({
        field: `${part}.${field}`,
        is: `${JSON.stringify(field)} is no field of a ${part}`,
        set: meant ? `${meant}, if that was meant` : "leave it out",
      })),
  },
} as const satisfies Record<string, Rule<Contract>>;
