import { shown } from "../../../shared/adapters/jetstream/drift.ts";
import { SILENT_AFTER } from "../../../shared/dispatch/alive.ts";
import { isStranded } from "../../../shared/dispatch/queues.ts";
import { queueFields } from "../../../shared/ports/queue-fields.ts";
import { CLOCK_IS_OFF, CLOCKS_IN_STEP } from "../../../shared/settings/clocks.ts";
import { RECONCILED_EVERY } from "../../../shared/settings/settings.ts";
import { sayDuration } from "../../../shared/values/duration.ts";
import type { Live } from "../live/live.ts";
import type { Found, Rule } from "../rule.ts";
import { accessRules } from "./access.ts";

const DAY = 86_400_000;

/** What differs in queues, as far as it is unsafe, or not. */
const drifted = ({ queues }: Live, unsafe: boolean): Found[] =>
  queues.flatMap(({ stream, info }) =>
    info.differences
      .filter(({ isUnsafe }) => isUnsafe === unsafe)
      .map(({ field, is, should }) => ({
        field: `${stream}.${field}`,
        is: `${field} of ${stream} is ${is}. ${queueFields[field].cost}`,
        set: `${field}: ${should}`,
      })),
  );

/** Of Pawl's own deployments, as they are. */
export const liveRules = {
  settings: {
    checks: "the environment: each variable, and the rules between them ([settings.md](settings.md))",
    prevents: "A function or command refuses to start.",
    severity: "error",
    mend: "Set what the line says. A deploy checks the same of the platform's settings.",
    find: ({ problems }) =>
      problems.map((line) => {
        const [, name = "settings"] = /^([A-Z][A-Z_]+)/.exec(line) ?? [];
        return { field: name, is: line, set: `${name}, as docs/settings.md says` };
      }),
  },
  "queue-unsafe": {
    checks: "every field of a queue's stream and consumer, where a difference can lose work or do it twice",
    prevents:
      "Somebody changed it, or an older version made it: each field's own cost is in [operator.md](operator.md#fields-of-a-queue).",
    severity: "error",
    mend: "`pawl agents --ensure`, `pawl run` and a deploy correct what NATS can change; then find out who changed it.",
    find: (live) => drifted(live, true),
  },
  "queue-differs": {
    checks: "every other field of them",
    prevents: "A queue behaves otherwise than the settings say, in a way that loses nothing.",
    severity: "warning",
    mend: "`pawl agents --ensure`, or change the setting.",
    find: (live) => drifted(live, false),
  },
  "consumer-gone": {
    checks: "whether each queue has its consumer",
    prevents: "Nothing of the queue is delivered.",
    severity: "error",
    mend: "Start the agent, or `pawl agents --ensure`; find out who deleted it.",
    find: ({ queues }) =>
      queues.flatMap(({ stream, info }) =>
        info.consumer
          ? []
          : [{ field: stream, is: `${stream} has no consumer`, set: "pawl agents --ensure" }],
      ),
  },
  "consumer-paused": {
    checks: "whether a consumer is paused",
    prevents: "Nothing of the queue is delivered until the pause is over.",
    severity: "warning",
    mend: "`nats consumer resume`, unless it is meant.",
    find: ({ queues }) =>
      queues.flatMap(({ stream, info: { consumer } }) =>
        consumer?.pausedUntil === undefined
          ? []
          : [
              {
                field: stream,
                is: `${stream} is paused until ${new Date(consumer.pausedUntil).toISOString()}`,
                set: "nats consumer resume",
              },
            ],
      ),
  },
  "messages-stranded": {
    checks: "messages that are neither waiting nor in flight",
    prevents:
      "The consumer gave up on them: their tasks stand still until the dispatch function makes dead letters of them.",
    severity: "error",
    mend: "See whether the dispatch function runs.",
    find: ({ queues }) =>
      queues.flatMap(({ stream, info }) =>
        info.consumer && isStranded(info)
          ? [
              {
                field: stream,
                is: `${info.messages - info.pending - info.inFlight} messages of ${stream} will not be delivered`,
                set: "npm run deploy -- dispatch",
              },
            ]
          : [],
      ),
  },
  "lane-left": {
    checks: "queues of lanes that went, and of older generations, for messages",
    prevents: "Their tasks wait for a runner that drains them, and nothing else looks there.",
    severity: "warning",
    mend: "Run or deploy the agent until it has drained them, then delete the stream.",
    find: ({ left }) =>
      left.map(({ stream, messages }) => ({
        field: stream,
        is: `${messages} messages are left in ${stream}, to which nothing is published any more`,
        set: "pawl run <agent> --drain",
      })),
  },
  "bucket-unsafe": {
    checks: "the definition of the buckets that have the documents",
    prevents: "Documents vanish or are read stale: tasks are lost, or done twice.",
    severity: "error",
    mend: "Correct it with `nats stream edit`.",
    find: ({ buckets }) =>
      buckets.flatMap(({ name, differences }) =>
        differences.map(({ field, have, want }) => ({
          field: `${name}.${field}`,
          is: `${field} of ${name} is ${shown(field, have)}`,
          set: `${field}: ${shown(field, want)}`,
        })),
      ),
  },
  "one-copy": {
    checks: "PAWL_REPLICAS, where NATS is on another machine or a cluster, and its sync_interval is not seen",
    prevents:
      "With one server its tasks' messages are gone, and with a power cut those of the last two minutes.",
    severity: "warning",
    mend: "Three servers and PAWL_REPLICAS=3; or sync_interval: always, which `--monitor` lets the doctor see.",
    find: ({ settings: { replicas }, isLocal, nats, sync }) =>
      nats && replicas === 1 && sync === undefined && (!isLocal || nats.cluster)
        ? {
            field: "PAWL_REPLICAS",
            is: `PAWL_REPLICAS is 1${nats.cluster ? `, in the cluster ${nats.cluster}` : ""}`,
            set: "PAWL_REPLICAS=3",
          }
        : undefined,
  },
  ...accessRules,
  "websocket-unreachable": {
    checks: "the WebSocket address that Workers have for NATS (NATS_URL in wrangler.toml)",
    prevents: "No function on Workers reaches NATS.",
    severity: "error",
    mend: "Give the server a websocket block, with TLS, and open its port.",
    find: ({ unreached }) =>
      unreached.map(({ url, reason }) => ({
        field: "NATS_URL",
        is: `${url} can't be reached: ${reason}`,
        set: "NATS_URL in wrangler.toml: an address that answers",
      })),
  },
  "secret-missing": {
    checks: "the secrets that agents declare, in this environment",
    prevents:
      "`pawl run` refuses to start the agent here. What is missing of a function, `npm run deploy -- --all --dry-run` says.",
    severity: "warning",
    mend: "Set it, if the agent runs here.",
    find: ({ secrets }) =>
      secrets.map(({ agent, missing }) => ({
        field: agent,
        is: `${agent} declares ${missing.join(", ")}, not set here`,
        set: missing.join(", "),
      })),
  },
  "clock-off": {
    checks: "the clocks of NATS and the store against this machine's",
    prevents: "Tasks start late, successors wait longer than they need to, and a report repairs nothing.",
    severity: "error",
    mend: "Synchronise the clocks.",
    find: ({ clocks }) =>
      Object.entries(clocks).flatMap(([whose, ahead]) => {
        const off = Math.abs(ahead);
        if (off <= CLOCKS_IN_STEP) return [];
        const is = `${whose} is ${sayDuration(off)} ${ahead < 0 ? "behind" : "ahead of"} this machine`;
        const found = { field: whose, is, set: "both clocks by NTP" };
        return [off > CLOCK_IS_OFF ? found : { ...found, severity: "warning" as const }];
      }),
  },
  "dispatch-silent": {
    checks:
      "when the dispatch function last came, what is due since three minutes, and ticks of schedules that passed",
    prevents: "Delays, retries, deadlines and schedules stand still, and lost messages are not found.",
    severity: "error",
    mend: "Deploy `dispatch`, and look at its log. Where it never came and nothing has a schedule that is a warning: `pawl run` does the rest.",
    find: ({ overdue, dispatched, now }) => {
      const found = (is: string) => ({ field: "dispatch", is, set: "npm run deploy -- dispatch" });
      const due = overdue.map(({ what, since }) =>
        found(`${what} is due for ${sayDuration(now - since)}, and nobody has dispatched it`),
      );
      if (!dispatched || now - (dispatched.at ?? dispatched.begunAt) <= SILENT_AFTER) return due;
      const { at, begunAt, hasSchedules } = dispatched;
      if (at !== undefined)
        return [found(`the dispatch function came last ${sayDuration(now - at)} ago`), ...due];
      const never = found(`the dispatch function never came, in ${sayDuration(now - begunAt)}`);
      return [hasSchedules ? never : { ...never, severity: "warning" as const }, ...due];
    },
  },
  "reconcile-silent": {
    checks: "when the last reconciliation was made",
    prevents: "Sequences stay unexplained, and finished tasks are not removed.",
    severity: "error",
    mend: "Deploy `reconcile`, or run `pawl reconcile`.",
    find: ({ reconciled, now }) => {
      if (!reconciled) return undefined;
      const { at, begunAt } = reconciled;
      if (now - (at ?? begunAt) <= RECONCILED_EVERY + DAY) return undefined;
      return {
        field: "reconcile",
        is:
          at === undefined
            ? `there was never a reconciliation, in ${sayDuration(now - begunAt)}`
            : `the last reconciliation was ${sayDuration(now - at)} ago`,
        set: "npm run deploy -- reconcile",
      };
    },
  },
  "index-missing": {
    checks: "Firestore's indexes against infra/firestore.indexes.json",
    prevents: "A query fails: lists, sweeps or reports do.",
    severity: "error",
    mend: "Create them as [deploy.md](deploy.md#firestore) says.",
    find: ({ firestore }) =>
      (firestore?.missing ?? []).map((index) => ({
        field: "firestore",
        is: `there is no index of ${index}`,
        set: "the index, by firebase deploy --only firestore",
      })),
  },
  "ttl-policy": {
    checks: "TTL policies on Pawl's collections",
    prevents:
      "A document is removed without its journal and its parts, and before its sequences are explained.",
    severity: "error",
    mend: "Remove the policy: Pawl removes what has expired itself.",
    find: ({ firestore }) =>
      (firestore?.policies ?? []).map((field) => ({
        field: "firestore",
        is: `${field} has a TTL policy`,
        set: "no policy",
      })),
  },
} as const satisfies Record<string, Rule<Live>>;

export type LiveRule = keyof typeof liveRules;
