import { PawlError } from "../errors/errors.ts";
import { checkNamespace } from "../task/names.ts";
import { parseDuration, showDuration } from "../values/duration.ts";
import type { Env } from "./variable.ts";
import { type FieldsSet, type Given, type Reading, readVariable, rows } from "./variables.ts";

/** Every number that the protocol depends on, by the field that its variable `sets`. Durations are milliseconds. */
export interface Settings extends FieldsSet {}

/** What follows from the settings. Never set by hand, so that they can't disagree. */
export interface Timing {
  /** Between two heartbeats. */
  readonly beatEvery: number;
  /** How long a runner may act after its last whole heartbeat was sent. */
  readonly leaseTime: number;
}

/** The rows that set a field each. */
const fields = rows.flatMap(([name, row]) => (row.sets === undefined ? [] : [{ name, row, sets: row.sets }]));

/** As the table has them. */
export const defaults = Object.fromEntries(
  fields.map(({ row, sets }) => [sets, row.read(row.default ?? "")]),
) as unknown as Settings;

/**
 * A beat every quarter, a lease of two thirds: at the default of 30 s the store may be away for 10 s at any moment
 * (7.5 + 10 < 20) without a task losing its lease.
 */
export function timing(settings: Pick<Settings, "ackWait">): Timing {
  const leaseTime = Math.floor((settings.ackWait * 2) / 3);
  return { beatEvery: Math.floor(settings.ackWait / 4), leaseTime };
}

/** What a handler has to end once its signal has aborted; the rest of PAWL_STOP_GRACE is for writing down that it did not. */
export function graceOf({ stopGrace }: Pick<Settings, "stopGrace">): number {
  return Math.floor((stopGrace * 2) / 3);
}

/** How long a successor waits after its claim: the holder's lease, and what clocks and scheduling may be off. */
export function takeoverWait(lease: number): number {
  return lease + Math.max(100, Math.floor(lease / 10));
}

/** Reconciliations come every week: `reconcile` runs on Mondays. */
export const RECONCILED_EVERY = 7 * 86_400_000;

/** A document has to be there still when its week is explained, also where one reconciliation did not come. */
export const SHORTEST_RETENTION = 2 * RECONCILED_EVERY;

/** How long after its last delivery a message may come again, at most: its record must outlive that. */
export function redeliveryHorizon({ ackWait, maxDeliver, duplicateWindow }: Settings): number {
  return Math.max(ackWait * maxDeliver, duplicateWindow);
}

interface Rule {
  readonly name: string;
  readonly why: string;
  readonly broken: (settings: Settings) => string | undefined;
}

/** A setting as a person sets it: PAWL_ACK_WAIT=30s. */
function shown(settings: Settings, key: keyof Settings): string {
  const { name, row } = fields.find(({ sets }) => sets === key) ?? { name: key };
  const value = settings[key];
  return `${name}=${row?.read === parseDuration ? showDuration(value as number) : value}`;
}

const atLeast = (key: keyof Settings, least: number) => (settings: Settings) => {
  if ((settings[key] as number) >= least) return undefined;
  const enough = shown({ ...settings, [key]: least }, key).split("=")[1];
  return `${shown(settings, key)} is too small: the least is ${enough}`;
};

/** Largest document: input and result with what the rest of a document can take. Firestore's own limit is 1 MiB. */
export const DOCUMENT_LIMIT = 1024 * 1024 - 16 * 1024;
export const DOCUMENT_OVERHEAD = 48 * 1024;

/** The cross-checks. */
export const settingRules: readonly Rule[] = [
  {
    name: "ack-wait",
    why: "Below a second, ordinary pauses of a busy machine look like crashes.",
    broken: atLeast("ackWait", 1_000),
  },
  {
    name: "retention-outlives-redelivery",
    why: "A redelivery that finds no record of the finished work would do it again.",
    broken: (settings) => {
      const horizon = redeliveryHorizon(settings);
      if (settings.retention >= horizon) return undefined;
      return `${shown(settings, "retention")} is shorter than the redelivery horizon ${showDuration(horizon)} (PAWL_ACK_WAIT × PAWL_MAX_DELIVER, or PAWL_DUPLICATE_WINDOW)`;
    },
  },
  {
    name: "retention-outlives-reconciliation",
    why: "A document that is gone before its week is explained leaves sequences that nobody explains. Reconciliations come weekly, and one that did not come must lose nothing.",
    broken: atLeast("retention", SHORTEST_RETENTION),
  },
  {
    name: "request-fits-lease",
    why: "A heartbeat asks several questions; if one may outlast the lease, a slow answer loses the task.",
    broken: (settings) => {
      const { leaseTime } = timing(settings);
      if (settings.requestTimeout < leaseTime) return undefined;
      return `${shown(settings, "requestTimeout")} is not below the lease ${showDuration(leaseTime)} (two thirds of PAWL_ACK_WAIT)`;
    },
  },
  {
    name: "document-fits",
    why: "A result that no document can hold would be lost after the work was paid for.",
    broken: (settings) => {
      const sum = settings.inputLimit + settings.resultLimit + DOCUMENT_OVERHEAD;
      if (sum <= DOCUMENT_LIMIT) return undefined;
      return `${shown(settings, "inputLimit")} and ${shown(settings, "resultLimit")} with ${DOCUMENT_OVERHEAD} for the rest are over a document's ${DOCUMENT_LIMIT} bytes`;
    },
  },
  { name: "max-deliver", why: "Hand-offs spend deliveries too.", broken: atLeast("maxDeliver", 10) },
  { name: "crash-limit", why: "One crash is no loop.", broken: atLeast("crashLimit", 2) },
  { name: "generation", why: "It is part of the stream's name.", broken: atLeast("generation", 1) },
  { name: "input-limit", why: "A task without input is still {}.", broken: atLeast("inputLimit", 2) },
  { name: "result-limit", why: "A task without a result still has null.", broken: atLeast("resultLimit", 4) },
  { name: "duplicate-window", why: "JetStream's own least.", broken: atLeast("duplicateWindow", 100) },
  {
    name: "replicas",
    why: "JetStream keeps an odd number of copies.",
    broken: (settings) =>
      [1, 3, 5].includes(settings.replicas)
        ? undefined
        : `${shown(settings, "replicas")}: it can be 1, 3 or 5`,
  },
  {
    name: "queue-bytes",
    why: "A queue that can't hold one task refuses all.",
    broken: (settings) => {
      const { queueBytes, inputLimit } = settings;
      if (queueBytes === -1 || queueBytes > 2 * inputLimit) return undefined;
      return `${shown(settings, "queueBytes")} is too small: -1, or more than twice PAWL_INPUT_LIMIT (${inputLimit})`;
    },
  },
  {
    name: "store-bytes",
    why: "A bucket that holds no more than a few tasks refuses all.",
    broken: (settings) => {
      const { storeBytes, inputLimit } = settings;
      if (storeBytes === -1 || storeBytes > 10 * inputLimit) return undefined;
      return `${shown(settings, "storeBytes")} is too small: -1, or more than ten times PAWL_INPUT_LIMIT (${inputLimit})`;
    },
  },
];

/** Completed by the defaults, cross-checked, frozen. */
export function makeSettings(given: Partial<Settings> = {}): Settings {
  const settings: { -readonly [K in keyof Settings]: Settings[K] } = { ...defaults, ...given };
  // A scaled-down ackWait brings its request time-out along, unless that was set too.
  if (given.requestTimeout === undefined) {
    settings.requestTimeout = Math.min(defaults.requestTimeout, Math.floor(timing(settings).leaseTime / 2));
  }
  checkNamespace(settings.namespace);
  const broken = settingRules.flatMap((rule) => {
    const problem = rule.broken(settings);
    return problem ? [`${problem}. ${rule.why}`] : [];
  });
  if (broken.length > 0) throw new PawlError("setting_invalid", broken.join("\n"));
  return Object.freeze(settings);
}

/** The numbers of an environment that was read whole. Undefined where one of them is not of its form. */
export function settingsOf({ given, malformed }: Reading): Settings | undefined {
  return fields.some(({ name }) => malformed.has(name)) ? undefined : makeSettings(settingsIn(given));
}

function settingsIn(given: Given): Partial<Settings> {
  const set = fields.filter(({ name }) => given[name] !== undefined);
  return Object.fromEntries(set.map(({ name, sets }) => [sets, given[name]]));
}

/** The protocol's numbers alone, whatever else is set. */
export function settingsFrom(env: Env): Settings {
  const given = fields.map(({ name }) => [name, readVariable(env, name)]);
  return makeSettings(settingsIn(Object.fromEntries(given) as Given));
}
