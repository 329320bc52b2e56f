import { isEnough } from "../../../shared/adapters/jetstream/nats-version.ts";
import { type Contract, isUnlimited, ms, span, unsure, waitsOf } from "../contract.ts";
import type { Rule } from "../rule.ts";

/** When a message that is being worked on is delivered again, and when the server gives it up. */
export const deliveryRules = {
  "backoff-replaces-ack-wait": {
    checks: "backoff against ack_wait",
    prevents:
      "The server puts backoff in place of ack_wait: work that takes longer than its first time is given to a second consumer while the first is at it.",
    severity: "error",
    mend: "Leave backoff out, and delay retries by naks with a delay; or let no time of it be shorter than ack_wait.",
    find: ({ consumer, application }) => {
      const { backoff = [], ack_wait } = consumer ?? {};
      if (!consumer || backoff.length === 0) return undefined;
      const { first, shortest } = waitsOf(consumer);
      const written = ack_wait ? ms(ack_wait) : first;
      const at = { field: "consumer.backoff" };
      const said = `backoff [${backoff.map((one) => span(ms(one))).join(", ")}] replaces ack_wait ${span(written)}`;
      if (shortest < written)
        return {
          ...at,
          is: `${said}: a delivery times out after ${span(shortest)}`,
          set: "backoff: leave it out",
        };
      if (first > written)
        return {
          ...at,
          is: `${said}: a delivery times out after ${span(first)}, and a message whose consumer crashed waits for that`,
          set: `ack_wait: ${span(first)}, or no backoff`,
          severity: "warning",
        };
      const { heartbeat, longest_work } = application;
      if (heartbeat !== undefined || longest_work !== undefined) return undefined;
      return {
        ...at,
        is: `${said}: a delivery times out after ${span(first)}, whatever ack_wait was asked for`,
        set: `heartbeat: below ${span(first / 3)}; or leave backoff out`,
        severity: "warning",
      };
    },
  },
  "heartbeat-too-slow": {
    checks: "the heartbeat against a third of the shortest wait for a word",
    prevents:
      "One heartbeat that is late or lost is enough, and the message is delivered to a second consumer while the first works.",
    severity: "error",
    mend: "Say that the work is in progress four times in each wait, or make ack_wait longer.",
    find: ({ consumer, application: { heartbeat } }) => {
      if (!consumer || !heartbeat) return undefined;
      const { shortest } = waitsOf(consumer);
      if (heartbeat * 3 < shortest) return undefined;
      const by = consumer.backoff?.length ? "backoff, which replaces ack_wait" : "ack_wait";
      const faster = Math.floor(shortest / 4_000) * 1_000;
      return {
        field: "application.heartbeat",
        is: `the heartbeat is every ${span(heartbeat)}, and a delivery times out after ${span(shortest)} (${by})`,
        set: `${faster > 0 ? `heartbeat: ${span(faster)}; or ` : ""}ack_wait: ${span(heartbeat * 4)}, without backoff`,
      };
    },
  },
  "work-outlasts-ack-wait": {
    checks: "the longest work, where there is no heartbeat, against the shortest wait for a word",
    prevents: "The message is delivered to a second consumer while the first still works on it.",
    severity: "error",
    mend: "Send heartbeats (`+WPI`), or make ack_wait longer than the work.",
    find: ({ consumer, application: { heartbeat, longest_work } }) => {
      if (!consumer || heartbeat !== 0 || !longest_work) return undefined;
      const { shortest } = waitsOf(consumer);
      if (longest_work < shortest) return undefined;
      return {
        field: "application.longest_work",
        is: `work takes up to ${span(longest_work)} without a heartbeat, and a delivery times out after ${span(shortest)}`,
        set: `heartbeat: ${span(Math.floor(shortest / 4))}; or ack_wait: ${span(longest_work * 2)}`,
      };
    },
  },
  "max-deliver-unlimited": {
    checks: "max_deliver",
    prevents:
      "A message that crashes its consumer, or can never succeed, is delivered for ever, and paid for each time.",
    severity: "error",
    mend: "Set max_deliver, and take what the server gives up as dead letters.",
    find: ({ consumer }) => {
      if (!consumer || consumer.ack_policy === "none" || !isUnlimited(consumer.max_deliver)) return undefined;
      const is = consumer.max_deliver === undefined ? "not set" : String(consumer.max_deliver);
      return { field: "consumer.max_deliver", is: `max_deliver is ${is}: no limit`, set: "max_deliver: 20" };
    },
  },
  "max-deliver-under-backoff": {
    checks: "max_deliver against the number of times in backoff, by the server's version",
    prevents:
      "The server refuses the consumer (10116): before 2.10 also where both are the same. Where it is made in spite of that, the last times are never used.",
    severity: "error",
    mend: "Let max_deliver be greater than the number of times in backoff.",
    find: ({ consumer, server }) => {
      const { backoff = [], max_deliver = -1 } = consumer ?? {};
      const isOld = server !== undefined && !isEnough(server);
      // To an old server no limit is a small one.
      if (backoff.length === 0 || (isUnlimited(max_deliver) ? !isOld : max_deliver > backoff.length))
        return undefined;
      const isRefused = isOld || max_deliver < backoff.length;
      if (!isRefused && server) return undefined;
      return {
        field: "consumer.max_deliver",
        is: `max_deliver is ${max_deliver}, and backoff has ${backoff.length} times${isRefused ? "" : ": a server before 2.10 refuses that"}`,
        set: `max_deliver: ${backoff.length + 1}`,
        ...(isRefused ? { refused: 10116 } : unsure(server)),
      };
    },
  },
  "push-fields-on-pull": {
    checks: "flow_control, idle_heartbeat and rate_limit_bps, where there is no deliver_subject",
    prevents:
      "They belong to push consumers: the server refuses a pull consumer with them (10089, 10088, 10086). An idle heartbeat of the server's is none of the work's, either.",
    severity: "error",
    mend: "Leave them out. Heartbeats of the work are `+WPI`, sent by whoever does it.",
    find: ({ consumer }) => {
      if (!consumer || consumer.deliver_subject) return undefined;
      const of = (field: string, value: string, refused: number) => ({
        field: `consumer.${field}`,
        is: `${field} is ${value}, and the consumer is pulled from`,
        set: `${field}: leave it out`,
        refused,
      });
      return [
        ...(consumer.flow_control ? [of("flow_control", "true", 10089)] : []),
        ...(consumer.rate_limit_bps ? [of("rate_limit_bps", String(consumer.rate_limit_bps), 10086)] : []),
        ...(consumer.idle_heartbeat ? [of("idle_heartbeat", span(ms(consumer.idle_heartbeat)), 10088)] : []),
      ];
    },
  },
  "ack-policy-not-explicit": {
    checks: "ack_policy",
    prevents: "Messages count as done before their work is, or with another's ack: what fails is lost.",
    severity: "error",
    mend: "Set ack_policy to explicit. It can't be changed: make another consumer, of another name.",
    find: ({ consumer }) => {
      const { ack_policy } = consumer ?? {};
      if (!consumer || ack_policy === "explicit" || ack_policy === "flow_control") return undefined;
      return {
        field: "consumer.ack_policy",
        is: `ack_policy is ${ack_policy ?? "not set, which is none"}`,
        set: "ack_policy: explicit",
      };
    },
  },
  "durable-goes-when-idle": {
    checks: "inactive_threshold of a durable consumer",
    prevents:
      "The server removes the consumer, and what was delivered and acked with it, when nobody has pulled for that long.",
    severity: "error",
    mend: "Leave inactive_threshold out.",
    find: ({ consumer }) => {
      if (!consumer?.durable_name || !consumer.inactive_threshold) return undefined;
      return {
        field: "consumer.inactive_threshold",
        is: `inactive_threshold is ${span(ms(consumer.inactive_threshold))}, and the consumer is durable`,
        set: "inactive_threshold: leave it out",
      };
    },
  },
  "nak-delay-blocks": {
    checks: "max_ack_pending against the workers, where naks have a delay",
    prevents:
      "A message under a delayed nak still counts as pending: all behind it wait for the whole delay.",
    severity: "warning",
    mend: "Ack the message and publish it again when it is due, or raise max_ack_pending; where order has to be kept, the wait is meant.",
    find: ({ consumer, application: { nak_delay, acks, workers = 1 } }) => {
      const most = consumer?.max_ack_pending;
      if (!(nak_delay || acks?.includes("nak_delay")) || isUnlimited(most) || (most as number) > workers)
        return undefined;
      const delay = nak_delay ? `up to ${span(nak_delay)}` : "a delay";
      return {
        field: "consumer.max_ack_pending",
        is: `max_ack_pending is ${most} for ${workers} at work, and naks have ${delay}`,
        set: `max_ack_pending: more than ${workers}; or ack, and publish again later`,
      };
    },
  },
  "nak-delay-under-backoff": {
    checks: "naks with a delay, where there is a backoff",
    prevents:
      "The server adds the backoff to the delay: a message comes again after the delay and the nth time less the first.",
    severity: "warning",
    mend: "Leave backoff out, or the delay of naks.",
    find: ({ consumer, application: { nak_delay, acks } }) => {
      const backoff = consumer?.backoff ?? [];
      if (backoff.length < 2 || !(nak_delay || acks?.includes("nak_delay"))) return undefined;
      const more = ms((backoff.at(-1) as number) - (backoff[0] as number));
      if (more === 0) return undefined;
      return {
        field: "consumer.backoff",
        is: `naks have ${nak_delay ? `a delay of ${span(nak_delay)}` : "a delay"}, to which backoff adds up to ${span(more)}`,
        set: "backoff: leave it out",
      };
    },
  },
  "nak-without-delay": {
    checks: "naks without a delay",
    prevents: "What fails is delivered again at once, and uses up max_deliver within a second.",
    severity: "warning",
    mend: "Nak with a delay; terminate what can't succeed.",
    find: ({ application: { acks } }) =>
      acks?.includes("nak")
        ? {
            field: "application.acks",
            is: "acks has nak, without a delay",
            set: "acks: nak_delay in its place",
          }
        : undefined,
  },
  "term-reason-ignored": {
    checks: "a reason with term, by the server's version",
    prevents: "A server before 2.10 does not know it, ignores the word, and delivers the message again.",
    severity: "error",
    mend: "Upgrade the server, or send term without a reason.",
    find: ({ application: { term_reason }, server }) => {
      if (!term_reason || (server && isEnough(server))) return undefined;
      return {
        field: "application.term_reason",
        is: `term is sent with a reason, and the server is ${server ?? "of a version that nobody said"}`,
        set: "term_reason: false, or a server 2.10 or newer",
        ...unsure(server),
      };
    },
  },
} as const satisfies Record<string, Rule<Contract>>;
