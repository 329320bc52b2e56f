import { PawlError } from "../errors/errors.ts";
import { type PriceTable, prices, pricesFrom } from "../journal/prices.ts";
import { checkNamespace } from "../task/names.ts";
import { parseDuration, showDuration } from "../values/duration.ts";

/** Every number that the protocol depends on. Durations are milliseconds; `settingVariables` says what each means. */
export interface Settings {
  readonly namespace: string;
  readonly generation: number;
  readonly ackWait: number;
  readonly duplicateWindow: number;
  readonly maxDeliver: number;
  readonly replicas: number;
  readonly queueBytes: number;
  readonly inputLimit: number;
  readonly resultLimit: number;
  readonly retention: number;
  readonly crashLimit: number;
  readonly stopGrace: number;
  readonly requestTimeout: number;
  /** What models cost. */
  readonly prices: PriceTable;
}

/** What follows from the settings. Never set by hand, so that they can't disagree. */
export interface Timing {
  /** Between two heartbeats. */
  readonly beatEvery: number;
  /** How long a runner may act after its last whole heartbeat was sent. */
  readonly leaseTime: number;
}

export const defaults: Settings = {
  namespace: "pawl",
  generation: 1,
  ackWait: 30_000,
  duplicateWindow: 120_000,
  maxDeliver: 1000,
  replicas: 1,
  queueBytes: -1,
  inputLimit: 512 * 1024,
  resultLimit: 256 * 1024,
  retention: 90 * 86_400_000,
  crashLimit: 5,
  stopGrace: 10_000,
  requestTimeout: 5_000,
  prices,
};

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
const RECONCILED_EVERY = 7 * 86_400_000;

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
  const [name, variable] = Object.entries(settingVariables).find(([, one]) => one.sets === key) ?? [key];
  const value = settings[key];
  return `${name}=${variable?.read === parseDuration ? showDuration(value as number) : value}`;
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
];

/** Completed by the defaults, cross-checked, frozen. */
export function makeSettings(given: Partial<Settings> = {}): Settings {
  const settings = { ...defaults, ...given };
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

interface Variable {
  readonly sets: keyof Settings;
  readonly read: (text: string) => number | undefined;
  readonly form: string;
  readonly meaning: string;
}

const duration = (sets: keyof Settings, example: string, meaning: string): Variable => {
  return { sets, read: parseDuration, form: `a duration such as "${example}"`, meaning };
};
const integer = (sets: keyof Settings, form: string, meaning: string): Variable => {
  return { sets, read: (text) => (/^-?\d+$/.test(text) ? Number(text) : undefined), form, meaning };
};

/** Environment variables: what they set, in which form, and what it means. */
export const settingVariables: Readonly<Record<string, Variable>> = {
  PAWL_ACK_WAIT: duration(
    "ackWait",
    "30s",
    "How long after its last heartbeat a silent runner's message is given to another. The clock starts at the delivery.",
  ),
  PAWL_DUPLICATE_WINDOW: duration(
    "duplicateWindow",
    "2m",
    "Publishing the same Msg-Id again within this time of the first is dropped by the stream.",
  ),
  PAWL_RETENTION: duration(
    "retention",
    "90d",
    "How long a finished task is kept, with its journal and all else that it owns, and its id is known. The clock starts when it ends.",
  ),
  PAWL_STOP_GRACE: duration(
    "stopGrace",
    "10s",
    "How long a runner may take to end after SIGTERM. Two thirds of it are the handler's, from the moment its signal aborts.",
  ),
  PAWL_REQUEST_TIMEOUT: duration(
    "requestTimeout",
    "5s",
    "Longest wait for one answer of the store or of NATS; half a lease at most unless it is set.",
  ),
  PAWL_CRASH_LIMIT: integer(
    "crashLimit",
    "a whole number",
    "Starts in a row that end without a word before a task is a dead letter.",
  ),
  PAWL_INPUT_LIMIT: integer("inputLimit", "a number of bytes", "Largest input, as JSON."),
  PAWL_RESULT_LIMIT: integer("resultLimit", "a number of bytes", "Largest result, as JSON."),
  PAWL_REPLICAS: integer("replicas", "1, 3 or 5", "Copies of each stream. 3 in production."),
  PAWL_QUEUE_BYTES: integer(
    "queueBytes",
    "a number of bytes, or -1",
    "Most bytes that a queue may hold; -1 for no limit. A full one refuses submits rather than drop work.",
  ),
  PAWL_MAX_DELIVER: integer(
    "maxDeliver",
    "a whole number",
    "Deliveries before JetStream gives up on a message: a last backstop, the document counts what matters.",
  ),
  PAWL_GENERATION: integer(
    "generation",
    "a whole number",
    "Part of every stream's name. Raise it to replace streams that can't be changed in place.",
  ),
};

export function settingsFrom(env: Readonly<Record<string, string | undefined>>): Settings {
  const given: Record<string, unknown> = {};
  if (env.PAWL_NAMESPACE) given.namespace = env.PAWL_NAMESPACE;
  if (env.PAWL_PRICES) given.prices = pricesFrom(env.PAWL_PRICES);
  for (const [variable, { sets, read, form }] of Object.entries(settingVariables)) {
    const text = env[variable];
    if (text === undefined || text === "") continue;
    const value = read(text);
    if (value === undefined) {
      throw new PawlError("setting_invalid", `${variable} is ${JSON.stringify(text)}; it should be ${form}`);
    }
    given[sets] = value;
  }
  return makeSettings(given);
}
