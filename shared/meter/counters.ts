/** What is counted while it happens, for alerts. What a report says is counted from the documents instead. */
export const counters = {
  publish_retries:
    "Tries of a dispatch that were repeated, by phase: dispatched_write, publish, rollback_write.",
  publish_rollbacks: "Dispatches whose publish definitely failed, and that were scheduled again.",
  rollback_failures: "Rollbacks that could not be written: the sweep for orphans repairs them.",
  duplicates_stopped: "Submits of work that was there already, by the layer that stopped them.",
  deliveries: "Messages handled, by what became of them. `skipped` are acks of work that was done before.",
  redeliveries: "Deliveries of messages that had been delivered before.",
  takeovers: "Claims of tasks whose holder fell silent.",
  submits_refused: "Submits that were refused, by why: store_full, queue_full, or a part of a quota.",
  requeued: "Tasks whose message was gone and was published anew.",
  webhooks: "Calls of the webhook, by how they ended.",
  store_reads: "Documents, queries, parts and texts asked of the store.",
  store_writes: "Documents, parts and texts written to the store.",
  store_read_ms: "Milliseconds that the reads took, all together.",
  store_write_ms: "Milliseconds that the writes took, all together.",
  model_tokens: "Tokens of model turns, by kind.",
  model_usd: "Dollars spent on model turns, by the price table.",
  spans_dropped:
    "Spans of traces that were not taken, by why: queue_full, unreachable, refused, rejected, unsent.",
} as const satisfies Record<string, string>;

export type Counter = keyof typeof counters;

/** By what each is told apart. */
export const counterLabels = {
  publish_retries: ["agent", "phase"],
  publish_rollbacks: ["agent", "phase"],
  rollback_failures: ["agent", "phase"],
  duplicates_stopped: ["agent", "layer"],
  deliveries: ["agent", "as"],
  redeliveries: ["agent"],
  takeovers: ["agent"],
  submits_refused: ["agent", "why"],
  requeued: ["agent"],
  webhooks: ["agent", "as"],
  store_reads: [],
  store_writes: [],
  store_read_ms: [],
  store_write_ms: [],
  model_tokens: ["agent", "kind"],
  model_usd: ["agent"],
  spans_dropped: ["why"],
} as const satisfies Record<Counter, readonly string[]>;

export type LabelsOf<C extends Counter> = Readonly<Record<(typeof counterLabels)[C][number], string>>;

export type Labels = Readonly<Record<string, string>>;

/** A series as Prometheus writes it, without the value. */
export function series(counter: string, labels: Labels): string {
  let list = "";
  for (const key in labels) list += `${list && ","}${key}="${escaped(labels[key] as string)}"`;
  return list === "" ? `pawl_${counter}` : `pawl_${counter}{${list}}`;
}

function escaped(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
