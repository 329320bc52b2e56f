import type { ErrorCode } from "../../shared/errors/errors.ts";
import type { Counter } from "../../shared/meter/counters.ts";
import type { HandledAs } from "../../shared/runner/ack.ts";
import { partNames } from "../../shared/settings/quota.ts";
import { added, ratio } from "./expr.ts";

const FULL = (["store_full", "queue_full"] as const satisfies readonly ErrorCode[]).join("|");

/** Deliveries that ended so. */
const ended = (...as: readonly HandledAs[]): string => as.join("|");

/** "critical": a person is wanted now. "warning": today. */
export type AlertSeverity = "critical" | "warning";

export interface Alert {
  readonly name: string;
  /** True, as PromQL has it, where something is wrong. */
  readonly expr: string;
  /** For so long, without a break. None: at once. */
  readonly lasts?: string;
  readonly severity: AlertSeverity;
  /** What is wrong. Of an agent's series the rule adds which agent. */
  readonly summary: string;
  /** What it means, and what to do: the runbook. */
  readonly todo: string;
  /** Where its runbook is; else under its name in docs/monitoring.md. */
  readonly runbook?: string;
}

/** Why nobody is alerted to what a counter counts. */
export interface Quiet {
  readonly quiet: string;
}

/** What there is to alert to in every counter. One that is forgotten here does not compile. */
export const counterAlerts: Readonly<Record<Counter, readonly Alert[] | Quiet>> = {
  publish_retries: [
    {
      name: "PawlPublishRetries",
      expr: `${added("publish_retries", "15m")} > 20`,
      severity: "warning",
      summary: "submits and dispatches have to be tried again and again",
      todo: "NATS or the store answers late, or not at all. Callers wait up to 15 seconds and get an error then. Look at both servers, and at the functions' logs for `publish.retry` and `store.unavailable`.",
    },
  ],
  publish_rollbacks: [
    {
      name: "PawlPublishRolledBack",
      expr: `${added("publish_rollbacks", "15m")} > 0`,
      severity: "warning",
      summary: "messages of tasks were refused for good",
      todo: "The stream took none, and said so: it is full, missing, or the identity may not publish. Nothing is lost: the task is scheduled, and dispatched by a later sweep. The log says why (`publish.rolled-back`).",
    },
  ],
  rollback_failures: [
    {
      name: "PawlRollbackFailed",
      expr: `${added("rollback_failures", "15m")} > 0`,
      severity: "warning",
      summary: "neither a message nor its rollback could be written",
      todo: "NATS refused the message and the store did not answer. The task stays dispatched without a message until the dispatch function repairs it, a minute after the store is back: see that it runs.",
    },
  ],
  duplicates_stopped: { quiet: "Submits that came twice, and were one task: what Pawl is for." },
  deliveries: [
    {
      name: "PawlTasksFailing",
      expr: `${added("deliveries", "15m", { as: ended("failed", "dead-letter") })} > 0`,
      severity: "warning",
      summary: "tasks failed for good",
      todo: "They are dead letters, with their reason, input and journal: `pawl dlq ls`, or the dashboard. Mend what they failed on, then `pawl dlq redrive`.",
    },
    {
      name: "PawlTasksInDoubt",
      expr: `${added("deliveries", "15m", { as: ended("in-doubt") })} > 0`,
      severity: "critical",
      summary: "an effect began, and nobody knows whether it happened",
      todo: "The task waits for a person. Look at the receiver of the effect, then say what you found: `pawl resolve <id>`.",
    },
    {
      name: "PawlStoreAway",
      expr: `${added("deliveries", "15m", { as: ended("store-away") })} > 0`,
      severity: "critical",
      summary: "runners let go of tasks because the store did not answer for a whole lease",
      todo: "Nothing is run blind, so nothing runs. Look at the store, and at the way to it: network, credentials, quotas of its own.",
    },
    {
      name: "PawlMessagesLeft",
      expr: `${added("deliveries", "15m", { as: ended("left", "other-key") })} > 0`,
      severity: "warning",
      summary: "messages were put back because a runner could not tell what to do with them",
      todo: "The log says why (`task.handled` with `as` left or other-key): a function without the key of a document (PAWL_SEAL_KEY), or an error that is none of Pawl's.",
    },
  ],
  redeliveries: [
    {
      name: "PawlRedeliveries",
      expr: `${ratio(added("redeliveries", "1h"), added("deliveries", "1h"))} > 0.5 and ${added("redeliveries", "1h")} > 20`,
      severity: "warning",
      summary: "more than half of all messages come for the second time or more",
      todo: "Hand-offs deliver again, and a function with many short invocations has many; so do runners that die, and acks that get lost. Compare with PawlTakeovers, and with `as` in pawl_deliveries_total: handed-off is by intent, skipped means that acks are lost.",
    },
  ],
  takeovers: [
    {
      name: "PawlTakeovers",
      expr: `${added("takeovers", "15m")} > 3`,
      severity: "warning",
      summary: "runners fall silent in the middle of tasks",
      todo: "Their processes are killed (out of memory, out of time), freeze, or are cut off from NATS. No work is done twice, but each costs a wait for a lease. A trace, or `pawl status <id>`, says which runner fell silent; look at its platform's log of that moment.",
    },
  ],
  submits_refused: [
    {
      name: "PawlSubmitsRefused",
      expr: `${added("submits_refused", "15m", { why: FULL })} > 0`,
      severity: "critical",
      summary: "submits are refused, because the store or a queue is nearly full",
      todo: "What was accepted goes on. See [when the store fills up](operator.md#when-the-store-fills-up).",
    },
    {
      name: "PawlQuotaReached",
      expr: `${added("submits_refused", "1h", { why: [...partNames, "contention"].join("|") })} > 20`,
      severity: "warning",
      summary: "an owner or agent has used up its quota",
      todo: "`pawl quota ls` says whose. Somebody submits more than was agreed, or the quota is too small ([quotas](operator.md#quotas)).",
    },
  ],
  requeued: [
    {
      name: "PawlMessagesLost",
      expr: `${added("requeued", "1h")} > 0`,
      severity: "warning",
      summary: "messages of tasks were gone, and were published anew",
      todo: "A dispatcher died between its write and its publish, which is harmless; or messages were deleted or purged, or lost with a server. The next report names each (`message_lost`, `orphan`).",
    },
  ],
  webhooks: [
    {
      name: "PawlWebhookFailing",
      expr: `${added("webhooks", "30m", { as: "failed" })} > 3`,
      severity: "warning",
      summary: "the webhook does not take what people have to hear",
      todo: "Notices are repeated until they are taken, but nobody hears of approvals and failures meanwhile. Look at the receiver of PAWL_WEBHOOK_URL: its answer stands in the log (`webhook.failed`).",
    },
  ],
  store_reads: { quiet: "How much is asked of the store. Its price is on the dashboard." },
  store_writes: { quiet: "The same of writes." },
  store_read_ms: [
    {
      name: "PawlStoreReadsSlow",
      expr: `${ratio(added("store_read_ms", "15m"), added("store_reads", "15m"))} > 1000`,
      lasts: "15m",
      severity: "warning",
      summary: "reads of the store take more than a second each",
      todo: "A heartbeat reads, and has to be done within a lease (two thirds of PAWL_ACK_WAIT): soon tasks will be lost to takeovers. Look at the store's load and at its distance.",
    },
  ],
  store_write_ms: [
    {
      name: "PawlStoreWritesSlow",
      expr: `${ratio(added("store_write_ms", "15m"), added("store_writes", "15m"))} > 1000`,
      lasts: "15m",
      severity: "warning",
      summary: "writes to the store take more than a second each",
      todo: "Every step of a task waits for one. Look at the store's load and at its distance; on NATS, at its disk.",
    },
  ],
  model_tokens: { quiet: "What models read and wrote: PawlSpending looks at their dollars." },
  model_usd: [
    {
      name: "PawlSpending",
      expr: `${added("model_usd", "1h")} > 5 and ${added("model_usd", "1h")} > 5 * (${added("model_usd", "1d")}) / 24`,
      severity: "warning",
      summary: "the last hour cost five times as many dollars as an hour of this day does",
      todo: "`pawl top` shows which tasks spend. An agent that loops is stopped by `limits.budgetUsd`, an owner by a quota in dollars ([quotas](operator.md#quotas)).",
    },
  ],
  spans_dropped: [
    {
      name: "PawlSpansDropped",
      expr: `${added("spans_dropped", "15m")} > 0`,
      severity: "warning",
      summary: "traces have holes, because spans were not taken",
      todo: "`why` says it: unreachable and unsent mean that the receiver is away or slow, refused that it wants another key or address, queue_full that there are more than it takes: sample fewer ([what it costs](#what-it-costs)).",
    },
  ],
};

/** What waits for an agent that is paused waits by intent. */
const UNLESS_PAUSED = "unless max by (job, agent) (pawl_agent_paused) > 0";

/** What the gauges show. */
export const gaugeAlerts: readonly Alert[] = [
  {
    name: "PawlMetricsMissing",
    expr: "absent(pawl_queue_pending)",
    lasts: "5m",
    severity: "critical",
    summary: "/metrics is not scraped",
    todo: "The API is down, Prometheus has another address or token, or the token was revoked. Until it is back no other alert of Pawl's can come.",
  },
  {
    name: "PawlQueueStuck",
    expr: `sum by (job, agent) (pawl_queue_oldest_seconds) > 900 and sum by (job, agent) (pawl_queue_in_flight) == 0 ${UNLESS_PAUSED}`,
    lasts: "5m",
    severity: "critical",
    summary: "tasks wait, and nobody takes them",
    todo: "No runner of this agent is up, or it can't claim: see its log, and whether its function is woken (cron, PAWL_WAKE_URL, PAWL_RUN_SECRET).",
  },
  {
    name: "PawlQueueSlow",
    expr: `sum by (job, agent) (pawl_queue_oldest_seconds) > 3600 ${UNLESS_PAUSED}`,
    lasts: "15m",
    severity: "warning",
    summary: "the oldest task has waited for more than an hour",
    todo: "More is submitted than is done: raise the agent's `limits.lanes`. Or one task holds its lane: `pawl tasks --state running` shows it.",
  },
  {
    name: "PawlAgentPaused",
    expr: "max by (job, agent) (pawl_agent_paused) > 0",
    lasts: "1d",
    severity: "warning",
    summary: "it has been paused for a day, and nothing new of it begins",
    todo: "Somebody paused it: `pawl agents` says who and why. `pawl resume <agent>`, once that is over.",
  },
  {
    name: "PawlStoreFilling",
    expr: "pawl_store_bytes / pawl_store_limit_bytes > 0.7",
    lasts: "15m",
    severity: "warning",
    summary: "seven tenths of the store are used; from eight on submits are refused",
    todo: "See [when the store fills up](operator.md#when-the-store-fills-up).",
  },
  {
    name: "PawlDispatchSilent",
    expr: "pawl_dispatch_age_seconds > 180",
    lasts: "2m",
    severity: "critical",
    summary: "the dispatch function does not come any more, which is due every minute",
    todo: "Delays, retries, deadlines and schedules stand still, and lost messages are not found. See that the function `dispatch` is woken (cron, PAWL_RUN_SECRET), and what its log says: `dispatch.unseen` means that it comes, and the store does not take its word. `pawl doctor` names what is due.",
  },
  {
    name: "PawlNotReconciled",
    expr: "pawl_report_age_seconds > 8 * 86400",
    severity: "critical",
    summary: "there was no reconciliation for more than eight days",
    todo: "Nobody has looked whether every sequence is explained, and nothing that ended since is removed. See that the function `reconcile` runs, or run `pawl reconcile`.",
  },
  {
    name: "PawlNeverReconciled",
    expr: "absent(pawl_report_age_seconds) and on () count(pawl_queue_pending) > 0",
    lasts: "8d",
    severity: "warning",
    summary: "there is no reconciliation yet, or the token of Prometheus may not see it",
    todo: "See that the function `reconcile` is deployed. A token that is limited to some agents sees no report.",
  },
];

const isQuiet = (one: readonly Alert[] | Quiet): one is Quiet => "quiet" in one;

export const alertsOfCounters: readonly Alert[] = Object.values(counterAlerts).flatMap((one) =>
  isQuiet(one) ? [] : one,
);
