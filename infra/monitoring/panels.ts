import type { Counter } from "../../shared/meter/counters.ts";
import { counted, ratio } from "./expr.ts";

export interface Panel {
  readonly title: string;
  /** What is drawn, and what each line is called. */
  readonly shows: readonly (readonly [expr: string, legend: string])[];
  /** As Grafana names it. */
  readonly unit: "short" | "s" | "ms" | "bytes" | "percentunit" | "currencyUSD" | "ops";
  /** A line over time, unless it says otherwise. */
  readonly as?: "timeseries" | "stat" | "table";
  readonly width?: number;
  readonly says: string;
}

/** Of one agent, or of all. */
const AGENT = 'agent=~"$agent"';
const TIME = "$__range";
const mine = (counter: Counter): string => {
  const series = counted(counter);
  return `${series}{${AGENT}}`;
};
const rate = (counter: Counter, by: string): string =>
  `sum by (${by}) (rate(${mine(counter)}[$__rate_interval]))`;
const within = (counter: Counter, by: string): string =>
  `sum by (${by}) (increase(${mine(counter)}[${TIME}]))`;
const plainRate = (counter: Counter): string => `sum(rate(${counted(counter)}[$__rate_interval]))`;

/** Where each counter is shown. One that is forgotten here does not compile. */
const panelsOf: Readonly<Record<Counter, readonly Panel[]>> = {
  deliveries: [
    {
      title: "Messages handled",
      shows: [[rate("deliveries", "as"), "{{as}}"]],
      unit: "ops",
      width: 12,
      says: "What became of them. `skipped` are acks of work that was done before.",
    },
    {
      title: "Failed for good",
      shows: [[`sum(increase(pawl_deliveries_total{${AGENT},as=~"failed|dead-letter"}[${TIME}]))`, "tasks"]],
      unit: "short",
      as: "stat",
      says: "In the time shown. `pawl dlq ls` names them.",
    },
    {
      title: "In doubt",
      shows: [[`sum(increase(pawl_deliveries_total{${AGENT},as="in-doubt"}[${TIME}]))`, "tasks"]],
      unit: "short",
      as: "stat",
      says: "In the time shown: an effect began, and nobody knows whether it happened.",
    },
  ],
  takeovers: [
    {
      title: "Takeovers",
      shows: [[within("takeovers", "agent"), "{{agent}}"]],
      unit: "short",
      as: "stat",
      says: "Runners that fell silent in the middle of a task.",
    },
  ],
  redeliveries: [
    {
      title: "Redeliveries",
      shows: [[rate("redeliveries", "agent"), "{{agent}}"]],
      unit: "ops",
      says: "Messages that came for the second time or more.",
    },
  ],
  requeued: [
    {
      title: "Messages replaced",
      shows: [[within("requeued", "agent"), "{{agent}}"]],
      unit: "short",
      as: "stat",
      says: "Tasks whose message was gone.",
    },
  ],
  duplicates_stopped: [
    {
      title: "Duplicates stopped",
      shows: [[rate("duplicates_stopped", "layer"), "{{layer}}"]],
      unit: "ops",
      says: "Submits of work that was there already, by what stopped them.",
    },
  ],
  submits_refused: [
    {
      title: "Submits refused",
      shows: [[rate("submits_refused", "why"), "{{why}}"]],
      unit: "ops",
      says: "By why: a full store or queue, or a part of a quota.",
    },
  ],
  publish_retries: [
    {
      title: "Publishes in trouble",
      shows: [
        [rate("publish_retries", "phase"), "tried again: {{phase}}"],
        [rate("publish_rollbacks", "phase"), "rolled back: {{phase}}"],
        [rate("rollback_failures", "phase"), "not rolled back: {{phase}}"],
      ],
      unit: "ops",
      says: "NATS or the store did not take a dispatch at once.",
    },
  ],
  publish_rollbacks: [],
  rollback_failures: [],
  webhooks: [
    {
      title: "Webhook",
      shows: [[rate("webhooks", "as"), "{{as}}"]],
      unit: "ops",
      says: "How calls of it ended.",
    },
  ],
  model_usd: [
    {
      title: "Dollars",
      shows: [[within("model_usd", "agent"), "{{agent}}"]],
      unit: "currencyUSD",
      as: "stat",
      says: "In the time shown, by the price table.",
    },
    {
      title: "Dollars an hour",
      shows: [[`3600 * ${rate("model_usd", "agent")}`, "{{agent}}"]],
      unit: "currencyUSD",
      width: 12,
      says: "By agent.",
    },
  ],
  model_tokens: [
    {
      title: "Tokens",
      shows: [[rate("model_tokens", "kind"), "{{kind}}"]],
      unit: "ops",
      says: "That models read and wrote, a second.",
    },
  ],
  store_reads: [
    {
      title: "Store",
      shows: [
        [plainRate("store_reads"), "reads"],
        [plainRate("store_writes"), "writes"],
      ],
      unit: "ops",
      says: "What is asked of it, a second.",
    },
  ],
  store_writes: [],
  store_read_ms: [
    {
      title: "Store: time of one",
      shows: [
        [ratio(plainRate("store_read_ms"), plainRate("store_reads")), "read"],
        [ratio(plainRate("store_write_ms"), plainRate("store_writes")), "write"],
      ],
      unit: "ms",
      says: "On average.",
    },
  ],
  store_write_ms: [],
  spans_dropped: [
    {
      title: "Spans dropped",
      shows: [[`sum by (why) (rate(${counted("spans_dropped")}[$__rate_interval]))`, "{{why}}"]],
      unit: "ops",
      says: "Holes in traces.",
    },
  ],
};

const gaugePanels: readonly Panel[] = [
  {
    title: "Waiting",
    shows: [[`sum by (agent) (pawl_queue_pending{${AGENT}})`, "{{agent}}"]],
    unit: "short",
    says: "Tasks in queues that nobody has taken.",
  },
  {
    title: "Under way",
    shows: [
      [`sum by (agent) (pawl_queue_in_flight{${AGENT}})`, "{{agent}}"],
      [`sum by (agent) (pawl_queue_redelivered{${AGENT}})`, "{{agent}}, again"],
    ],
    unit: "short",
    says: "Taken and not acked; of these, those that came again.",
  },
  {
    title: "Oldest",
    shows: [[`max by (agent) (pawl_queue_oldest_seconds{${AGENT}})`, "{{agent}}"]],
    unit: "s",
    says: "Age of the oldest message in a queue.",
  },
  {
    title: "Paused",
    shows: [[`max by (agent) (pawl_agent_paused{${AGENT}}) > 0`, "{{agent}}"]],
    unit: "short",
    as: "table",
    says: "Agents of which nothing new begins, until somebody resumes them.",
  },
  {
    title: "Store filled",
    shows: [[`pawl_store_bytes{${AGENT}} / pawl_store_limit_bytes{${AGENT}}`, "{{agent}}"]],
    unit: "percentunit",
    says: "From four fifths on submits are refused. Nothing where the store has no end.",
  },
];

const reportPanels: readonly Panel[] = [
  {
    title: "Broken",
    shows: [['sum(pawl_report_findings{severity="broken"})', "findings"]],
    unit: "short",
    as: "stat",
    says: "By the newest report: promises that did not hold.",
  },
  {
    title: "To look at",
    shows: [['sum(pawl_report_findings{severity="look"})', "findings"]],
    unit: "short",
    as: "stat",
    says: "By the newest report.",
  },
  {
    title: "Since the last reconciliation",
    shows: [["max(pawl_report_age_seconds)", "age"]],
    unit: "s",
    as: "stat",
    says: "A week at most, where all is well.",
  },
  {
    title: "Since dispatch came last",
    shows: [["max(pawl_dispatch_age_seconds)", "age"]],
    unit: "s",
    as: "stat",
    says: "A minute or two, where all is well.",
  },
  {
    title: "What the newest report names",
    shows: [["sum by (finding, severity) (pawl_report_findings) > 0", "{{finding}}"]],
    unit: "short",
    as: "table",
    width: 12,
    says: "What they mean is in docs/operator.md#findings.",
  },
];

const of = (...names: readonly Counter[]): Panel[] => names.flatMap((name) => panelsOf[name]);

export const rows: Readonly<Record<string, readonly Panel[]>> = {
  "What the reports say": reportPanels,
  Queues: gaugePanels,
  Work: of("deliveries", "duplicates_stopped", "submits_refused", "webhooks"),
  Trouble: of(
    "takeovers",
    "requeued",
    "redeliveries",
    "publish_retries",
    "publish_rollbacks",
    "rollback_failures",
  ),
  Money: of("model_usd", "model_tokens"),
  "Store and traces": of("store_reads", "store_writes", "store_read_ms", "store_write_ms", "spans_dropped"),
};
