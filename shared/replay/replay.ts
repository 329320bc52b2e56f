import type { Agent } from "../agent.ts";
import { emptyHead, known } from "../journal/entries.ts";
import type { Bus } from "../ports/bus.ts";
import { systemClock } from "../ports/clock.ts";
import type { Deps } from "../ports/deps.ts";
import type { Model } from "../ports/model.ts";
import type { Holding } from "../runner/execution.ts";
import type { Outcome } from "../runner/outcome.ts";
import { run } from "../runner/run.ts";
import { makeSettings } from "../settings/settings.ts";
import { submitted } from "../task/create.ts";
import type { Running } from "../task/document.ts";
import { apply } from "../task/transitions.ts";
import { memoryStore } from "../testing/memory-store.ts";
import { parseDuration } from "../values/duration.ts";
import { canonicalJson, hashInput, type Json } from "../values/json.ts";
import { type Difference, goingAlong, type ReplayedCall, type Seen } from "./along.ts";
import type { ExportedJournal } from "./exported.ts";

export type { Difference, ReplayedCall } from "./along.ts";

/** What became of a handler that was run on a journal alone. */
export interface Replay {
  readonly task: string;
  readonly agent: string;
  /** In the order in which the handler makes them. */
  readonly calls: readonly ReplayedCall[];
  /** "stops": at a call whose result is not in the journal. "hangs": its own code did not go on in time. */
  readonly ends: "returns" | "throws" | "stops" | "hangs" | "refused";
  /** What it returns. */
  readonly result?: Json;
  /** What it throws, or why its input is refused. */
  readonly error?: { readonly code: string; readonly message: string };
  /** The first one first: what follows may follow from it. */
  readonly differences: readonly Difference[];
}

export interface ReplayOptions {
  /** How long the handler may take: its own code does, its calls don't. "30s" by default. */
  readonly timeout?: string;
}

const TIMEOUT = 30_000;
/** Two thirds of it are for a handler that has run into the time-out, and is told to stop. */
const STOP_GRACE = 1_500;

/**
 * Runs an agent's handler on a journal, by the code that runs it for real, and lets nothing begin: no step, effect, model or
 * child, no store or broker is reached. What the handler does beside its calls it does here too: that can't be prevented.
 */
export async function replay(
  agent: Agent,
  journal: ExportedJournal,
  options: ReplayOptions = {},
): Promise<Replay> {
  const timeout = (options.timeout === undefined ? undefined : parseDuration(options.timeout)) ?? TIMEOUT;
  const seen: Seen = { calls: [], differences: [], made: new Set() };
  const { outcome } = await run(await holdingOf(agent, journal, timeout, seen));
  const ended = endOf(outcome, seen);
  const { id, agent: name } = journal.task;
  const last = lastDifference(journal, seen, ended);
  const differences = [...seen.differences, ...(last ? [last] : [])];
  return { task: id, agent: name, calls: seen.calls, ...ended, differences };
}

type Ended = Pick<Replay, "ends" | "result" | "error">;

function endOf(outcome: Outcome, { calls }: Seen): Ended {
  switch (outcome.kind) {
    case "completed":
      return { ends: "returns", result: outcome.result };
    case "retry":
    case "failed": {
      const { code, message, phase } = outcome.error;
      const ends = code === "task_timeout" ? "hangs" : phase === "input" ? "refused" : "throws";
      return { ends, error: { code, message } };
    }
    case "doubt":
      // It returned past an effect that a redrive has left in doubt.
      return { ends: "stops" };
    default:
      return { ends: calls.some(({ would }) => would !== undefined) ? "stops" : "hangs" };
  }
}

/** What only its end shows. */
function lastDifference(
  { task, entries, redacted }: ExportedJournal,
  seen: Seen,
  ended: Ended,
): Difference | undefined {
  // What follows a difference follows from it.
  if (seen.differences.some(({ kind }) => kind === "calls")) return undefined;
  const { ends, error } = ended;
  const why = error ? `${error.code}: ${error.message}` : "";
  const isOver = task.state === "completed";
  const left = [...known(entries)].filter(([key]) => !seen.made.has(key));
  // Past a redrive a handler may have gone another way, and left calls behind.
  const isRedriven = task.redriven || entries.some(({ kind }) => kind === "redriven");
  const [next] = isRedriven ? [] : left;
  const more = next && `${next[1].kind} ${next[0]}`;
  switch (ends) {
    case "refused":
      return { kind: "input", message: why };
    case "hangs":
      return {
        kind: "error",
        message: `The handler's own code did not go on in time, after ${lastCall(seen)}`,
      };
    case "throws":
      if (isOver || more)
        return {
          kind: "error",
          message: `After ${lastCall(seen)} it throws ${why}${more ? `; the journal goes on with ${more}` : ""}`,
        };
      return undefined;
    case "stops": {
      const stop = seen.calls.find(({ would }) => would !== undefined);
      if (isOver && stop)
        return {
          kind: "calls",
          message: `${stop.call} is not in the journal, and the task was completed without it`,
        };
      return undefined;
    }
    case "returns":
      if (more)
        return {
          kind: "calls",
          message: `It returns after ${lastCall(seen)}; the journal goes on with ${more}`,
        };
      if (!isOver || redacted || canonicalJson(task.result ?? null) === canonicalJson(ended.result ?? null))
        return undefined;
      return {
        kind: "result",
        message: `It returns ${shown(ended.result)}; the task was completed with ${shown(task.result)}`,
      };
    default:
      return ends satisfies never;
  }
}

const lastCall = ({ calls }: Seen) => calls.at(-1)?.call ?? "its beginning";

function shown(value: Json | undefined): string {
  const text = JSON.stringify(value ?? null);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

const QUEUE = "REPLAY";

/** An execution as a runner has it, of which every part is in this process's memory, and none can reach outside. */
async function holdingOf(
  agent: Agent,
  journal: ExportedJournal,
  timeout: number,
  seen: Seen,
): Promise<Holding> {
  const { task: from, entries, at, version } = journal;
  const { id, input, attempts, epoch, createdAt, signals, redriven } = from;
  const now = () => at;
  const store = memoryStore({ now });
  const deps: Deps = {
    store,
    bus: UNREACHABLE as Bus,
    // Its time stands still where the journal was taken; a handler's own code takes the time that it takes.
    clock: { ...systemClock, now },
    log: () => {},
    settings: makeSettings({ namespace: "replay", stopGrace: STOP_GRACE }),
    runner: "replay",
    model: UNREACHABLE as Model,
    lanesOf: () => 1,
    meter: { count: () => {}, flush: async () => {} },
    sealer: { seal: () => "", isGenuine: () => true, isOfKnownKey: () => true, acceptsUnsealed: true },
  };
  const mark = { now: at, stamp: "replay", by: "replay" };
  const born = { ...{ id, agent: from.agent, input }, lane: 0, inputHash: hashInput(input), at: createdAt };
  const base = submitted({ ...born, stamp: "replay", by: "replay" }, QUEUE);
  const before = {
    ...base,
    fence: 1,
    attempts,
    epoch,
    signals,
    journaled: entries.length,
    ...(redriven && { redriven }),
  };
  const holder = { queue: QUEUE, seq: 1, token: "replay", runner: "replay", via: "replay", lease: 0 };
  const task = { ...apply(before, { type: "claim", ...holder }, mark), fresh: false } as Running;
  const head = {
    ...emptyHead({ id, fence: 1, epoch, createdAt }, version, "replay"),
    count: entries.length,
    recent: entries,
  };
  const last = entries.findLast((entry) => entry.kind === "redriven");
  await store.putHead({ ...head, ...(last?.kind === "redriven" && { redriven: last.dispatch }) });
  await store.create(task);
  const held = await store.get(id);
  const open = new AbortController().signal;
  const lease = { lost: open, cancelled: open, check: () => {}, stopBeats: async () => {} };
  const { budgetUsd: _, ...limits } = agent.limits;
  // Nothing is asked that a budget could refuse.
  const replayed: Agent = { ...accepting(agent, journal), limits: { ...limits, timeout } };
  const along = goingAlong(journal, seen);
  const execution = { deps, agent: replayed, held, lease, stop: open, delivery: { deliveries: 1 }, along };
  return execution as unknown as Holding;
}

/** What was taken out of an input, its schema may miss: then it is given as it is. */
function accepting(agent: Agent, { redacted }: ExportedJournal): Agent {
  const schema = agent.input?.["~standard"];
  if (!schema || !redacted) return agent;
  const validate: typeof schema.validate = async (value) => {
    const own = structuredClone(value);
    const checked = await schema.validate(value);
    return checked.issues ? { value: own } : checked;
  };
  return { ...agent, input: { "~standard": { ...schema, validate } } };
}

/** Whoever asks anything of it has gone past the gate: nothing is done. */
const UNREACHABLE: unknown = new Proxy(
  { announce: () => {} },
  {
    get: (own, name) => {
      if (name in own) return own[name as keyof typeof own];
      throw new Error(`A replay reaches nothing: ${String(name)} was asked for`);
    },
  },
);
