import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { type ApplicationField, applicationFields } from "./application.ts";
import type { Part, Unknown } from "./contract.ts";
import { nearest } from "./nearest.ts";

/** How a value is written: a list of words is one of them. Anything else that JetStream has is taken as it is. */
type Form =
  | "time"
  | "times"
  | "number"
  | "flag"
  | "text"
  | "texts"
  | "source"
  | "sources"
  | "any"
  | readonly string[];

const streamForms = {
  name: "text",
  subjects: "texts",
  description: "text",
  retention: ["limits", "interest", "workqueue"],
  storage: ["file", "memory"],
  discard: ["old", "new"],
  compression: ["none", "s2"],
  max_consumers: "number",
  max_msgs: "number",
  max_bytes: "number",
  max_msgs_per_subject: "number",
  max_msg_size: "number",
  max_age: "time",
  duplicate_window: "time",
  subject_delete_marker_ttl: "time",
  num_replicas: "number",
  first_seq: "number",
  no_ack: "flag",
  sealed: "flag",
  deny_delete: "flag",
  deny_purge: "flag",
  allow_direct: "flag",
  mirror_direct: "flag",
  allow_rollup_hdrs: "flag",
  allow_msg_ttl: "flag",
  allow_msg_counter: "flag",
  allow_msg_schedules: "flag",
  allow_atomic: "flag",
  allow_batched: "flag",
  discard_new_per_subject: "flag",
  persist_mode: "any",
  placement: "any",
  mirror: "source",
  sources: "sources",
  republish: "any",
  subject_transform: "any",
  metadata: "any",
  consumer_limits: "any",
} as const satisfies Record<keyof StreamConfig, Form>;

const consumerForms = {
  name: "text",
  durable_name: "text",
  description: "text",
  ack_policy: ["explicit", "all", "none", "flow_control"],
  deliver_policy: ["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"],
  replay_policy: ["instant", "original"],
  ack_wait: "time",
  idle_heartbeat: "time",
  inactive_threshold: "time",
  max_expires: "time",
  priority_timeout: "time",
  backoff: "times",
  max_deliver: "number",
  max_ack_pending: "number",
  max_waiting: "number",
  max_batch: "number",
  max_bytes: "number",
  num_replicas: "number",
  opt_start_seq: "number",
  rate_limit_bps: "number",
  flow_control: "flag",
  headers_only: "flag",
  mem_storage: "flag",
  filter_subject: "text",
  filter_subjects: "texts",
  deliver_subject: "text",
  deliver_group: "text",
  opt_start_time: "text",
  pause_until: "text",
  sample_freq: "any",
  metadata: "any",
  priority_groups: "any",
  priority_policy: "any",
} as const satisfies Record<keyof ConsumerConfig, Form>;

const applicationForms: Readonly<Record<string, ApplicationField>> = applicationFields;

const forms: Readonly<Record<"stream" | "consumer", Readonly<Record<string, Form>>>> = {
  stream: streamForms,
  consumer: consumerForms,
};

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const NANOS = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
  d: 8.64e13,
  w: 6.048e14,
} as const;
const PIECE = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d|w)/g;

/** "30s", "1h30m", "72h0m0s", or nanoseconds; undefined where it is no time. */
export function nanosOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "string" || value === "" || value.length > 40) return undefined;
  if (value.replace(PIECE, "") !== "") return undefined;
  const pieces = [...value.matchAll(PIECE)];
  return Math.round(
    pieces.reduce((sum, [, number, unit]) => sum + Number(number) * NANOS[unit as keyof typeof NANOS], 0),
  );
}

const LONGEST_LIST = 1_000;
const TIME = 'a time: "30s", "1h30m", or a number of nanoseconds';

function read(form: Form, value: unknown): unknown {
  switch (form) {
    case "any":
      return value;
    case "time":
      return nanosOf(value) ?? wrong(TIME);
    case "times":
      return listOf(value, "time");
    case "texts":
      return listOf(value, "text");
    case "source":
      return isFields(value) && typeof value.name === "string" ? value : wrong('an object with a "name"');
    case "sources":
      return listOf(value, "source");
    case "number":
      return Number.isInteger(value) ? value : wrong("a whole number");
    case "flag":
      return typeof value === "boolean" ? value : wrong("true or false");
    case "text":
      return typeof value === "string" ? value : wrong("a text");
    default:
      return form.includes(value as string) ? value : wrong(`one of ${form.join(", ")}`);
  }
}

function listOf(value: unknown, form: Form): unknown {
  if (!Array.isArray(value) || value.length > LONGEST_LIST)
    return wrong(`a list, of ${LONGEST_LIST} at most`);
  return value.map((one) => read(form, one));
}

const wrong = (form: string): never => {
  throw new Error(form);
};

/** A configuration's fields, each in its form: times in nanoseconds. What JetStream does not have is told. */
export function configIn(part: "stream" | "consumer", given: Fields, unknown: Unknown[]): Fields {
  const known = forms[part];
  return Object.fromEntries(
    Object.entries(given).flatMap(([field, value]) => {
      const form = Object.hasOwn(known, field) ? known[field] : undefined;
      if (form === undefined) {
        const meant = nearest(field, Object.keys(known));
        unknown.push({ part, field, ...(meant && { meant }) });
        return [];
      }
      return value === null ? [] : [[field, valued(part, field, form, value)] as const];
    }),
  );
}

/** Our own form: what it does not have is a mistake, and nothing is looked at with it. Times are milliseconds. */
export function applicationIn(given: Fields): Fields {
  return Object.fromEntries(
    Object.entries(given).map(([field, value]) => {
      const known = Object.hasOwn(applicationForms, field) ? applicationForms[field] : undefined;
      if (!known) throw unknownIn("application", field, Object.keys(applicationForms));
      return [field, applied(field, known, value)];
    }),
  );
}

function applied(field: string, { form, several }: ApplicationField, value: unknown): unknown {
  if (several) {
    const list = Array.isArray(value) ? value : [value];
    return list.map((one) => valued("application", field, form as Form, one));
  }
  if (form !== "duration") return valued("application", field, form as Form, value);
  if (value === "none") return 0;
  if (value === "forever") return Number.POSITIVE_INFINITY;
  return (valued("application", field, "time", value) as number) / 1_000_000;
}

function valued(part: Part, field: string, form: Form, value: unknown): unknown {
  try {
    return read(form, value);
  } catch (error) {
    const is = JSON.stringify(value)?.slice(0, 80) ?? "undefined";
    throw new PawlError("usage", `${part}.${field} is ${is}; it should be ${messageOf(error)}`);
  }
}

export function unknownIn(what: string, field: string, known: readonly string[]): PawlError {
  const meant = nearest(field, known);
  const hint = meant ? `Was ${meant} meant?` : `It can have: ${known.join(", ")}`;
  return new PawlError(
    "usage",
    `${what} has a field ${JSON.stringify(field.slice(0, 80))} that it can't have. ${hint}`,
  );
}
