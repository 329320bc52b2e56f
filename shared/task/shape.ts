import { Unreadable } from "../errors/errors.ts";
import type { Cost } from "../journal/cost.ts";
import type { Head } from "../journal/entries.ts";
import type { Logs } from "../journal/logs.ts";
import { NO_COUNTS } from "./counts.ts";
import type { Common, Redriven, Seal, Settlement, State, Task, TaskFailure } from "./document.ts";
import { isAgentName } from "./names.ts";

/** Says what is wrong with a value, beginning with where in it: ".at is missing; it should be a time". */
type Rule = (value: unknown) => string | undefined;
type Shape<T> = { readonly [F in keyof T]-?: Rule };

const rule =
  (should: string, fits: (value: unknown) => boolean): Rule =>
  (value) =>
    fits(value) ? undefined : ` is ${kindOf(value)}; it should be ${should}`;

/** Further from 1970 than this there are no dates. */
const LATEST = 8.64e15;

const text = rule("a text", (value) => typeof value === "string");
/** Queues and keys are named by it. */
const agent = rule("an agent's name", (value) => typeof value === "string" && isAgentName(value));
const flag = rule("true or false", (value) => typeof value === "boolean");
const number = rule("a number", Number.isFinite);
const time = rule("a time", (value) => Number.isFinite(value) && Math.abs(value as number) <= LATEST);
const object = rule("an object", isObject);
const one = rule("1", (value) => value === 1);
const anything: Rule = () => undefined;

const optional =
  (wanted: Rule): Rule =>
  (value) =>
    value === undefined ? undefined : wanted(value);

const listOf =
  (wanted: Rule): Rule =>
  (value) => {
    if (!Array.isArray(value)) return ` is ${kindOf(value)}; it should be a list`;
    for (let i = 0; i < value.length; i++) {
      const wrong = wanted(value[i]);
      if (wrong) return `[${i}]${wrong}`;
    }
    return undefined;
  };

/** With these fields at least: those of a later version are let through. */
function shape(fields: Readonly<Record<string, Rule>>): Rule {
  const all = Object.entries(fields);
  return (value) => {
    if (!isObject(value)) return object(value);
    for (const [name, wanted] of all) {
      const wrong = wanted(value[name]);
      if (wrong) return `.${name}${wrong}`;
    }
    return undefined;
  };
}

const cost = shape({
  turns: number,
  inputTokens: number,
  outputTokens: number,
  usd: number,
} satisfies Shape<Cost>);
const failure = shape({
  code: text,
  message: text,
  stack: optional(text),
  phase: text,
  on: optional(listOf(number)),
} satisfies Shape<TaskFailure>);
const untold = optional(shape({ stamp: text, at: time, tries: number, dueAt: time }));
const settlement = shape({ queue: text, seq: number, dispatch: number, outcome: text, at: time });
const settledPage = listOf(settlement);
const logs = optional(
  shape({
    count: number,
    lines: listOf(shape({ at: time, fence: number, level: optional(text), text })),
  } satisfies Shape<Logs>),
);
const historyEntry = shape({
  at: time,
  event: text,
  state: text,
  fence: number,
  stamp: text,
  by: text,
  note: optional(text),
  error: optional(shape({ code: text, message: text, where: optional(text) })),
});

/** Counts that are 0 are left out of a document. */
const countsShape = shape(Object.fromEntries(Object.keys(NO_COUNTS).map((name) => [name, optional(number)])));
const seal = optional(shape({ own: text, before: text, stamp: text } satisfies Shape<Seal>));

const COMMON: Shape<Common> = {
  v: one,
  id: text,
  agent,
  lane: number,
  orderingKey: optional(text),
  parent: optional(text),
  meta: optional(
    shape({
      owner: optional(text),
      requestHash: optional(text),
      msgId: optional(text),
      labels: optional(object),
      traceparent: optional(text),
    }),
  ),
  input: object,
  inputHash: text,
  fence: number,
  stamp: text,
  released: flag,
  lease: number,
  stopped: optional(shape({ at: time, by: text, execution: number })),
  needs: optional(number),
  dispatches: number,
  attempts: number,
  executions: number,
  silentStarts: number,
  epoch: number,
  journaled: number,
  again: optional(number),
  unjournaled: optional(flag),
  redriven: optional(
    shape({
      dispatch: number,
      at: time,
      again: optional(listOf(number)),
      from: optional(number),
    } satisfies Shape<Redriven>),
  ),
  spent: cost,
  saved: cost,
  counts: optional(countsShape),
  settled: listOf(settlement),
  settledPages: number,
  settledHash: optional(text),
  publishDuplicates: shape({
    window: optional(number),
    subject: optional(number),
    document: optional(number),
    key: optional(number),
  }),
  redeliveriesSkipped: number,
  signals: listOf(shape({ name: text, value: anything, at: time })),
  cancelRequested: optional(shape({ at: time, by: text })),
  lastError: optional(failure),
  logs,
  history: listOf(historyEntry),
  createdAt: time,
  updatedAt: time,
  seal,
};

type Own<S extends State> = Omit<Extract<Task, { state: S }>, keyof Common | "state">;

/** What each state has besides. */
const OWN: { readonly [S in State]: Shape<Own<S>> } = {
  scheduled: { dueAt: time },
  dispatched: { queue: text, seq: optional(number), dueAt: optional(time) },
  running: { queue: text, seq: number, token: text, runner: text, via: text, started: flag, fresh: flag },
  waiting: { waitingFor: listOf(text), summary: optional(text), dueAt: optional(time), untold },
  in_doubt: { effect: text, tries: number, untold },
  completed: { result: anything, expiresAt: time },
  failed: {
    error: failure,
    raw: optional(shape({ base64: text, bytes: number, truncated: flag, subject: text })),
    expiresAt: time,
    untold,
  },
  cancelled: { expiresAt: time },
};

/** Which fields a state has, and others may not. */
export function ownFields(state: State): readonly string[] {
  return Object.keys(OWN[state]);
}

const byState = new Map(Object.entries(OWN).map(([state, fields]) => [state, shape(fields)]));
const state = rule(`one of ${Object.keys(OWN).join(", ")}`, (value) => byState.has(value as string));
const common = shape({ ...COMMON, state });
const document: Rule = (value) => common(value) ?? byState.get((value as Task).state)?.(value);

const head = shape({
  v: one,
  taskId: text,
  born: time,
  epoch: number,
  fence: number,
  version: number,
  stamp: text,
  count: number,
  again: optional(number),
  spent: cost,
  saved: cost,
  forgotten: optional(cost),
  redriven: optional(number),
  pages: listOf(text),
  recent: listOf(shape({ kind: text, key: text, when: optional(time) })),
  logs,
  seal,
} satisfies Shape<Head>);

/**
 * A task's document, checked only as far as nobody who reads it stumbles. Whether what it says is true is not asked, nor
 * whether its own id is the one that it lies under.
 */
export function readTask(json: string, id: string, revision?: string): Task {
  return read(`Task ${id}'s document`, json, id, document, revision) as Task;
}

/** A journal's head, likewise. */
export function readHead(json: string, taskId: string, revision?: string): Head {
  return read(`The journal of ${taskId}`, json, taskId, head, revision) as Head;
}

/** A page of what a task settled. */
export function readSettled(json: string, id: string): readonly Settlement[] {
  return read(`What task ${id} settled before`, json, id, settledPage) as readonly Settlement[];
}

function read(what: string, json: string, key: string, wanted: Rule, revision?: string): unknown {
  let value: unknown;
  // What the parser says would quote the text, which is nobody's to see in a log.
  let why: string | undefined = "it is not JSON";
  try {
    value = JSON.parse(json);
    const wrong = wanted(value);
    why = wrong && (wrong.startsWith(".") ? wrong.slice(1) : `it${wrong}`);
  } catch {}
  if (why === undefined) return value;
  throw new Unreadable(what, { key, why, text: json, ...(revision !== undefined && { revision }) });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "string"
    ? "a text"
    : typeof value === "object"
      ? "an object"
      : String(value).slice(0, 40);
}
