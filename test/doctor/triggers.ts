import type { ContractRule } from "../../infra/doctor/rules.ts";

type Given = Readonly<Record<string, unknown>>;

/** As a file has it. */
export interface Case {
  readonly stream?: Given;
  readonly consumer?: Given;
  readonly application?: Given;
  readonly server?: string;
}

/** Of each rule, what it just finds, and what it just does not find. */
export const triggers: Readonly<Record<ContractRule, readonly [finds: Case, spares: Case]>> = {
  "backoff-replaces-ack-wait": [
    { consumer: { ack_wait: "30s", backoff: ["30s", "29s"] } },
    { consumer: { ack_wait: "30s", backoff: ["30s", "2m"] }, application: { heartbeat: "5s" } },
  ],
  "heartbeat-too-slow": [
    { consumer: { ack_wait: "30s" }, application: { heartbeat: "10s" } },
    { consumer: { ack_wait: "30s" }, application: { heartbeat: "9.9s" } },
  ],
  "work-outlasts-ack-wait": [
    { consumer: { ack_wait: "30s" }, application: { heartbeat: "none", longest_work: "30s" } },
    { consumer: { ack_wait: "30s" }, application: { heartbeat: "none", longest_work: "29s" } },
  ],
  "max-deliver-unlimited": [{ consumer: { ack_wait: "30s" } }, { consumer: { max_deliver: 1000 } }],
  "max-deliver-under-backoff": [
    { consumer: { max_deliver: 2, backoff: ["30s", "1m"] }, server: "2.9.10" },
    { consumer: { max_deliver: 2, backoff: ["30s", "1m"] }, server: "2.10.27" },
  ],
  "push-fields-on-pull": [
    { consumer: { durable_name: "a", ack_policy: "explicit", flow_control: true } },
    {
      consumer: { ack_policy: "explicit", flow_control: true, idle_heartbeat: "5s", deliver_subject: "out" },
    },
  ],
  "ack-policy-not-explicit": [{ consumer: { ack_policy: "all" } }, { consumer: { ack_policy: "explicit" } }],
  "durable-goes-when-idle": [
    { consumer: { durable_name: "a", ack_policy: "explicit", inactive_threshold: "5m" } },
    { consumer: { name: "a", ack_policy: "explicit", inactive_threshold: "5m" } },
  ],
  "nak-delay-blocks": [
    { consumer: { max_ack_pending: 4 }, application: { nak_delay: "10s", workers: 4 } },
    { consumer: { max_ack_pending: 5 }, application: { nak_delay: "10s", workers: 4 } },
  ],
  "nak-delay-under-backoff": [
    { consumer: { backoff: ["30s", "1m"] }, application: { nak_delay: "10s" } },
    { consumer: { backoff: ["30s", "30s"] }, application: { nak_delay: "10s" } },
  ],
  "nak-without-delay": [
    { consumer: { max_deliver: 5 }, application: { acks: ["ack", "nak"] } },
    { consumer: { max_deliver: 5 }, application: { acks: ["ack", "nak_delay"] } },
  ],
  "term-reason-ignored": [
    { consumer: { max_deliver: 5 }, application: { term_reason: true }, server: "2.9.25" },
    { consumer: { max_deliver: 5 }, application: { term_reason: true }, server: "2.10.0" },
  ],
  "ack-wait-outlives-record": [
    { consumer: { ack_wait: "10m1s" }, application: { record_ttl: "10m" } },
    { consumer: { ack_wait: "10m" }, application: { record_ttl: "10m" } },
  ],
  "redelivery-outlives-record": [
    { consumer: { backoff: ["1m", "2m"], max_deliver: 4 }, application: { record_ttl: "6m59s" } },
    { consumer: { backoff: ["1m", "2m"], max_deliver: 4 }, application: { record_ttl: "7m" } },
  ],
  "max-age-outlives-record": [
    { stream: { max_age: "7d" }, application: { record_ttl: "72h" } },
    { stream: { max_age: "72h" }, application: { record_ttl: "3d" } },
  ],
  "record-does-not-follow": [
    { stream: { storage: "file" }, application: { ack_wait_from_env: true, record_ttl: "10m" } },
    { stream: { storage: "file" }, application: { ack_wait_from_env: true, record_ttl: "forever" } },
  ],
  "no-record": [
    { stream: { storage: "file" }, application: { record_ttl: "none" } },
    { stream: { storage: "file" }, application: { record_ttl: "1s" } },
  ],
  "window-shorter-than-retries": [
    { stream: { storage: "file" }, application: { publish_retry: "120s" } },
    { stream: { storage: "file" }, application: { publish_retry: "119s" } },
  ],
  "window-over-max-age": [
    { stream: { duplicate_window: "61s", max_age: "60s" } },
    { stream: { duplicate_window: "60s", max_age: "60s" } },
  ],
  "redrive-swallowed": [
    { stream: { storage: "file" }, application: { redrive_id: "same" } },
    { stream: { storage: "file" }, application: { redrive_id: "new" } },
  ],
  "lost-before-redelivered": [
    { consumer: { ack_wait: "5m" }, application: { dispatch_timeout: "5m" } },
    { consumer: { ack_wait: "5m" }, application: { dispatch_timeout: "301s" } },
  ],
  "rolled-back-unknown": [
    { stream: { storage: "file" }, application: { rolls_back: "always" } },
    { stream: { storage: "file" }, application: { rolls_back: "when_definite" } },
  ],
  "attempts-counted-twice": [
    { stream: { storage: "file" }, application: { attempts_per_failure: 2 } },
    { stream: { storage: "file" }, application: { attempts_per_failure: 1 } },
  ],
  "discard-old-loses": [
    { stream: { retention: "workqueue", max_bytes: 1_000_000 } },
    { stream: { retention: "workqueue", max_bytes: -1 } },
  ],
  "subject-limit-evicts": [
    { stream: { retention: "workqueue", discard: "new", max_msgs_per_subject: 1 } },
    {
      stream: {
        retention: "workqueue",
        discard: "new",
        discard_new_per_subject: true,
        max_msgs_per_subject: 1,
      },
    },
  ],
  "max-age-loses": [
    { stream: { retention: "workqueue", max_age: "7d" } },
    { stream: { retention: "limits", max_age: "7d" } },
  ],
  "memory-storage": [
    { stream: { retention: "workqueue", storage: "memory" } },
    { stream: { retention: "limits", storage: "memory" } },
  ],
  "publishes-unconfirmed": [
    { stream: { retention: "workqueue", no_ack: true } },
    { stream: { retention: "workqueue", no_ack: false } },
  ],
  "fed-by-sources": [
    { stream: { retention: "workqueue", sources: [{ name: "IN" }] } },
    { stream: { retention: "workqueue", sources: [] } },
  ],
  "one-copy-unsynced": [
    { stream: { retention: "workqueue", num_replicas: 1 }, application: { sync: "interval" } },
    { stream: { retention: "workqueue", num_replicas: 3 }, application: { sync: "interval" } },
  ],
  "names-reused": [
    {
      stream: {
        config: { name: "Q", retention: "workqueue", discard: "new" },
        state: { last_seq: 50, messages: 10 },
      },
      consumer: {
        stream_name: "Q",
        name: "w",
        created: "2026-11-01T00:00:00Z",
        config: { max_deliver: 9 },
        delivered: { consumer_seq: 39 },
      },
    },
    {
      stream: {
        config: { name: "Q", retention: "workqueue", discard: "new" },
        state: { last_seq: 50, messages: 10 },
      },
      consumer: {
        stream_name: "Q",
        name: "w",
        created: "2026-11-01T00:00:00Z",
        config: { max_deliver: 9 },
        delivered: { consumer_seq: 40 },
      },
    },
  ],
  "server-too-old": [
    { stream: { storage: "file" }, server: "2.9.25" },
    { stream: { storage: "file" }, server: "2.10.0" },
  ],
  "advisories-uncaptured": [
    { consumer: { max_deliver: 5 }, application: { dead_letters: "none" } },
    { consumer: { max_deliver: 5 }, application: { dead_letters: "stream" } },
  ],
  "platform-ends-work": [
    { consumer: { max_deliver: 5 }, application: { platform_limit: "15m", longest_work: "15m" } },
    {
      consumer: { max_deliver: 5 },
      application: { platform_limit: "15m", longest_work: "20m", hands_off: true },
    },
  ],
  "not-nanoseconds": [
    { consumer: { ack_wait: 30 }, stream: { max_age: 0 } },
    { consumer: { ack_wait: 1_000_000 } },
  ],
  "unknown-field": [{ consumer: { ack_wait: "30s", maxDeliver: 5 } }, { consumer: { ack_wait: "30s" } }],
  "server-refuses": [
    { stream: { discard_new_per_subject: true, max_msgs_per_subject: 1 } },
    { stream: { discard: "new", discard_new_per_subject: true, max_msgs_per_subject: 1 } },
  ],
};
