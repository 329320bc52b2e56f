import { parseDuration, showDuration } from "./duration.ts";
import { PawlError } from "./errors.ts";
import { checkNamespace } from "./names.ts";

/** Every number that the protocol depends on. Durations are milliseconds. */
export interface Settings {
  /** Prefix of streams, subjects and documents: two namespaces share nothing. */
  readonly namespace: string;
  /** In every stream's name. Raise it to replace streams that can't be changed in place. */
  readonly generation: number;
  /** How long after its last heartbeat a silent runner's message is given to another. The clock starts at delivery. */
  readonly ackWait: number;
  /** Publishing the same Msg-Id again within this time is dropped by the stream. */
  readonly duplicateWindow: number;
  /** Deliveries of one message before JetStream gives up on it: a last backstop, the document counts what matters. */
  readonly maxDeliver: number;
  /** Copies of each stream. 3 in production. */
  readonly replicas: number;
  /** Most bytes a queue may hold; -1 for no limit. When full, submits are refused rather than work dropped. */
  readonly queueBytes: number;
  /** Largest input, in bytes of JSON. */
  readonly inputLimit: number;
  /** Largest result, in bytes of JSON. */
  readonly resultLimit: number;
  /** How long a finished task's document is kept. The clock starts when it ends. */
  readonly retention: number;
  /** Starts in a row that end without a word before the task is a dead letter. */
  readonly crashLimit: number;
  /** How long a handler may take to end after its signal aborted, before the runner goes on without it. */
  readonly stopGrace: number;
  /** Longest wait for one answer of the store or of NATS. */
  readonly requestTimeout: number;
}

/** What follows from the settings. Never set by hand, so that they can't disagree. */
export interface Timing {
  /** Between two heartbeats. */
  readonly beatEvery: number;
  /** How long a runner may act after its last whole heartbeat was sent. */
  readonly lease: number;
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
};

/**
 * A beat every quarter, a lease of two thirds: at the default of 30 s the store may be away for 10 s at any moment
 * (7.5 + 10 < 20) without a task losing its lease.
 */
export function timing(settings: Pick<Settings, "ackWait">): Timing {
  const lease = Math.floor((settings.ackWait * 2) / 3);
  return { beatEvery: Math.floor(settings.ackWait / 4), lease };
}

/** How long a successor waits after its claim: the holder's lease, and what clocks and scheduling may be off. */
export function takeoverWait(lease: number): number {
  return lease + Math.max(100, Math.floor(lease / 10));
}

interface Rule {
  readonly name: string;
  readonly why: string;
  readonly broken: (settings: Settings) => string | undefined;
}

const atLeast =
  (key: keyof Settings, least: number, unit = "") =>
  (settings: Settings) =>
    (settings[key] as number) >= least
      ? undefined
      : `${key} is ${settings[key]}; the least is ${least}${unit}`;

/** Largest document: input and result with what the rest of a document can take. Firestore's own limit is 1 MiB. */
export const DOCUMENT_LIMIT = 1024 * 1024 - 16 * 1024;
const DOCUMENT_OVERHEAD = 48 * 1024;

/** The cross-checks. */
export const settingRules: readonly Rule[] = [
  {
    name: "ack-wait",
    why: "Below a second, ordinary pauses of a busy machine look like crashes.",
    broken: atLeast("ackWait", 1_000, " ms"),
  },
  {
    name: "retention-outlives-redelivery",
    why: "A redelivery that finds no record of the finished work would do it again.",
    broken: ({ retention, ackWait, maxDeliver, duplicateWindow }) => {
      const horizon = Math.max(ackWait * maxDeliver, duplicateWindow);
      if (retention >= horizon) return undefined;
      return `retention ${showDuration(retention)} is shorter than the redelivery horizon ${showDuration(horizon)} (ackWait × maxDeliver, duplicateWindow)`;
    },
  },
  {
    name: "request-fits-lease",
    why: "A heartbeat asks three questions; if one may outlast the lease, a slow answer loses the task.",
    broken: (settings) => {
      const { lease } = timing(settings);
      if (settings.requestTimeout < lease) return undefined;
      return `requestTimeout ${showDuration(settings.requestTimeout)} is not below the lease ${showDuration(lease)} (two thirds of ackWait)`;
    },
  },
  {
    name: "document-fits",
    why: "A result that no document can hold would be lost after the work was paid for.",
    broken: ({ inputLimit, resultLimit }) => {
      const sum = inputLimit + resultLimit + DOCUMENT_OVERHEAD;
      if (sum <= DOCUMENT_LIMIT) return undefined;
      return `inputLimit ${inputLimit} + resultLimit ${resultLimit} + ${DOCUMENT_OVERHEAD} is over the document's ${DOCUMENT_LIMIT} bytes`;
    },
  },
  { name: "max-deliver", why: "Hand-offs spend deliveries too.", broken: atLeast("maxDeliver", 10) },
  { name: "crash-limit", why: "One crash is no loop.", broken: atLeast("crashLimit", 2) },
  { name: "generation", why: "It is part of the stream's name.", broken: atLeast("generation", 1) },
  { name: "input-limit", why: "A task without input is still {}.", broken: atLeast("inputLimit", 2) },
  { name: "result-limit", why: "A task without a result still has null.", broken: atLeast("resultLimit", 4) },
  { name: "duplicate-window", why: "JetStream's own least.", broken: atLeast("duplicateWindow", 100, " ms") },
  {
    name: "replicas",
    why: "JetStream keeps an odd number of copies.",
    broken: ({ replicas }) =>
      [1, 3, 5].includes(replicas) ? undefined : `replicas is ${replicas}; it can be 1, 3 or 5`,
  },
];

/** Completed by the defaults, cross-checked, frozen. */
export function makeSettings(given: Partial<Settings> = {}): Settings {
  const settings = { ...defaults, ...given };
  // A scaled-down ackWait brings its request time-out along, unless that was set too.
  if (given.requestTimeout === undefined) {
    settings.requestTimeout = Math.min(defaults.requestTimeout, Math.floor(timing(settings).lease / 2));
  }
  checkNamespace(settings.namespace);
  const broken = settingRules.flatMap((rule) => {
    const problem = rule.broken(settings);
    return problem ? [`${problem}. ${rule.why}`] : [];
  });
  if (broken.length > 0) throw new PawlError("setting_invalid", broken.join("\n"));
  return Object.freeze(settings);
}

type Reader = (text: string) => number | undefined;
const integer: Reader = (text) => (/^-?\d+$/.test(text) ? Number(text) : undefined);

/** Environment variables, what they set and in which form. */
export const settingVariables = {
  PAWL_ACK_WAIT: ["ackWait", parseDuration, 'a duration such as "30s"'],
  PAWL_DUPLICATE_WINDOW: ["duplicateWindow", parseDuration, 'a duration such as "2m"'],
  PAWL_RETENTION: ["retention", parseDuration, 'a duration such as "90d"'],
  PAWL_STOP_GRACE: ["stopGrace", parseDuration, 'a duration such as "10s"'],
  PAWL_REQUEST_TIMEOUT: ["requestTimeout", parseDuration, 'a duration such as "5s"'],
  PAWL_MAX_DELIVER: ["maxDeliver", integer, "a whole number"],
  PAWL_REPLICAS: ["replicas", integer, "1, 3 or 5"],
  PAWL_QUEUE_BYTES: ["queueBytes", integer, "a number of bytes, or -1"],
  PAWL_INPUT_LIMIT: ["inputLimit", integer, "a number of bytes"],
  PAWL_RESULT_LIMIT: ["resultLimit", integer, "a number of bytes"],
  PAWL_CRASH_LIMIT: ["crashLimit", integer, "a whole number"],
  PAWL_GENERATION: ["generation", integer, "a whole number"],
} as const satisfies Record<string, readonly [keyof Settings, Reader, string]>;

export function settingsFrom(env: Readonly<Record<string, string | undefined>>): Settings {
  const given: Record<string, unknown> = {};
  if (env.PAWL_NAMESPACE) given.namespace = env.PAWL_NAMESPACE;
  for (const [variable, [key, read, form]] of Object.entries(settingVariables)) {
    const text = env[variable];
    if (text === undefined || text === "") continue;
    const value = read(text);
    if (value === undefined) {
      throw new PawlError("setting_invalid", `${variable} is ${JSON.stringify(text)}; it should be ${form}`);
    }
    given[key] = value;
  }
  return makeSettings(given);
}
