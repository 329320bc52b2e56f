import type { RightsDrift } from "../../infra/creds/compare.ts";
import type { Live } from "../../infra/doctor/live/live.ts";
import type { LiveRule } from "../../infra/doctor/rules/live.ts";
import type { QueueInfo } from "../../shared/ports/bus.ts";
import { makeSettings } from "../../shared/settings/settings.ts";

export const NOW = Date.parse("2026-11-16T02:24:00Z");
const DAY = 86_400_000;

/** A deployment with which nothing is wrong. */
export const WELL: Live = {
  now: NOW,
  settings: makeSettings(),
  problems: [],
  isLocal: false,
  nats: { version: "2.12.1", asksWho: true },
  sync: "always",
  queues: [],
  left: [],
  buckets: [],
  clocks: {},
  refused: [],
  unreached: [],
  secrets: [],
  overdue: [],
  rights: [],
};

const info: QueueInfo = {
  now: NOW,
  pending: 1,
  inFlight: 1,
  redelivered: 0,
  messages: 2,
  firstSeq: 1,
  lastSeq: 2,
  createdAt: NOW - DAY,
  consumer: { createdAt: NOW - DAY, delivered: 1, ackFloor: 0 },
  differences: [],
};
const { consumer, ...unconsumed } = info;
const queue = (given: Partial<QueueInfo>, whole: QueueInfo = info) => ({
  queues: [{ stream: "PAWL_echo_0_g1", info: { ...whole, ...given } }],
});
const differs = (isUnsafe: boolean) =>
  queue({ differences: [{ field: "ack_wait", is: "1s", should: "30s", isUnsafe }] });
const bucket = (field: string) => ({
  buckets: [{ name: "KV_pawl-tasks", differences: [{ field, have: 60_000_000_000, want: 0 }] }],
});

const rights = (more: Partial<RightsDrift>): Partial<Live> => ({
  rights: [{ identity: "a", mayAll: false, wide: [], lacks: [], ...more }],
  settings: makeSettings({ isolation: "accounts" }),
});
const came = (at: number) => ({ dispatched: { at, begunAt: 0, hasSchedules: false } });

/** Of each rule, what it just finds, and what it just does not find. */
export const liveTriggers: Readonly<
  Record<LiveRule, readonly [finds: Partial<Live>, spares: Partial<Live>]>
> = {
  settings: [{ problems: ["PAWL_ACK_WAIT=500ms is too small: the least is 1s"] }, { problems: [] }],
  "queue-unsafe": [differs(true), differs(false)],
  "queue-differs": [differs(false), differs(true)],
  "consumer-gone": [queue({}, unconsumed), queue({})],
  "consumer-paused": [
    queue({ consumer: { ...(consumer as NonNullable<typeof consumer>), pausedUntil: NOW + DAY } }),
    queue({}),
  ],
  "messages-stranded": [queue({ messages: 3 }), queue({ messages: 2 })],
  "lane-left": [{ left: [{ stream: "PAWL_echo_3_g1", lane: 3, generation: 1, messages: 1 }] }, { left: [] }],
  "bucket-unsafe": [bucket("max_age"), { buckets: [{ name: "KV_pawl-tasks", differences: [] }] }],
  "one-copy": [
    { sync: undefined as never, isLocal: true, nats: { version: "2.12.1", asksWho: true, cluster: "c" } },
    { sync: undefined as never, isLocal: true },
  ],
  "anyone-may-connect": [
    { nats: { version: "2.12.1", asksWho: false } },
    { nats: { version: "2.12.1", asksWho: false }, isLocal: true },
  ],
  "permissions-too-wide": [
    rights({ wide: ["publish to $KV.pawl-tasks.>"] }),
    rights({ lacks: ["publish to $KV.pawl-tasks-a.>"] }),
  ],
  "permission-missing": [
    rights({ lacks: ["publish to $KV.pawl-tasks-a.>"] }),
    rights({ wide: ["publish to $KV.pawl-tasks.>"] }),
  ],
  "websocket-unreachable": [{ unreached: [{ url: "wss://nats.test", reason: "no" }] }, { unreached: [] }],
  "secret-missing": [{ secrets: [{ agent: "ticket", missing: ["JIRA_TOKEN"] }] }, { secrets: [] }],
  "clock-off": [{ clocks: { NATS: -5_001 } }, { clocks: { NATS: -5_000 } }],
  "dispatch-silent": [came(NOW - 180_001), came(NOW - 180_000)],
  "reconcile-silent": [
    { reconciled: { at: NOW - 8 * DAY - 1, begunAt: 0 } },
    { reconciled: { at: NOW - 8 * DAY, begunAt: 0 } },
  ],
  "index-missing": [{ firestore: { missing: ["pawl-tasks: shard, expiresAt"], policies: [] } }, {}],
  "ttl-policy": [{ firestore: { missing: [], policies: ["pawl-tasks.expiresAt"] } }, {}],
};
