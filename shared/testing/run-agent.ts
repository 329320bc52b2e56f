import type { Agent } from "../agent.ts";
import { PawlError } from "../errors/errors.ts";
import type { Cost } from "../journal/cost.ts";
import { type Entry, emptyHead } from "../journal/entries.ts";
import { readJournal } from "../journal/journal.ts";
import type { Logs } from "../journal/logs.ts";
import type { Bus } from "../ports/bus.ts";
import { systemClock } from "../ports/clock.ts";
import type { Deps } from "../ports/deps.ts";
import type { TurnRequest } from "../ports/model.ts";
import type { Holding } from "../runner/execution.ts";
import { record } from "../runner/record.ts";
import { run } from "../runner/run.ts";
import { graceOf, makeSettings } from "../settings/settings.ts";
import { submitted } from "../task/create.ts";
import type { HistoryEntry, State, Task, TaskFailure } from "../task/document.ts";
import type { TaskEvent } from "../task/events.ts";
import { isFinal } from "../task/table.ts";
import { apply } from "../task/transitions.ts";
import { hashInput, type Json, type JsonObject } from "../values/json.ts";
import { answersStored } from "./answers-stored.ts";
import { type Crash, type CrashPoint, crashOf, dyingStore } from "./dying-store.ts";
import { memoryStore } from "./memory-store.ts";
import { answerTo, endChild } from "./outside.ts";
import { type ModelScript, type ScriptedModel, scripted } from "./scripted-model.ts";

/** What the world outside does in a test. */
export interface RunOptions {
  /** What the model answers, one for each turn in the order in which they are asked, however many `llm` calls they are of; or a function of the request. A turn that is asked again after a crash gets the same answer. */
  readonly model?: ModelScript;
  /**
   * The process dies, once, right after an entry of the journal was stored: the n-th, or the one that is named:
   * "step:read", "intent:post", "receipt:post". The handler then starts anew, as it would on another machine.
   */
  readonly crashAfter?: CrashPoint;
  /** The same, right before it is stored: what the entry tells of has been done, and nobody knows. */
  readonly crashBefore?: CrashPoint;
  /** Answers to approvals, by name, or by the name of the tool that asks first: true, false, or who said so. */
  readonly approvals?: Readonly<Record<string, boolean | { approved: boolean; by: string; note?: string }>>;
  /** Events for waitFor, by name. */
  readonly events?: Readonly<Record<string, Json>>;
  /** What became of an effect in doubt: true, false, or its receipt. */
  readonly resolve?: (effect: string) => boolean | { receipt: Json };
  /** What a child task returns. If it throws, the child fails with that error, and its parent's `result()` with `child_failed`. */
  readonly children?: (agent: string, input: JsonObject) => Json | Promise<Json>;
  /** The task's id. "test" by default. */
  readonly id?: string;
}

/** What became of the task. */
export interface AgentRun {
  /** "completed" or "failed"; "waiting" or "in_doubt" where the test has no answer. */
  readonly state: State;
  /** Of a completed task. */
  readonly result?: Json;
  /** Of a failed one: its `code`, `message` and `phase`. */
  readonly error?: TaskFailure;
  /** Of one that waits: the names of what it waits for, such as "approval:publish". */
  readonly waitingFor?: readonly string[];
  /** And what a person is asked, if it asks one. */
  readonly summary?: string;
  /** The entries of its journal, in order. */
  readonly journal: readonly Entry[];
  /** How often the handler was started. */
  readonly executions: number;
  /** Virtual time that passed, in milliseconds: sleeps, retries and waits included. */
  readonly elapsed: number;
  /** What its model turns cost, by the price table. */
  readonly spent: Cost;
  /** What the handler logged, as the task keeps it. */
  readonly logs?: Logs;
  /** What happened to the task, transition by transition. */
  readonly history: readonly HistoryEntry[];
  /** What the model was asked. */
  readonly requests: readonly TurnRequest[];
}

const QUEUE = "TEST";
/** A handler that starts more often than this never ends. */
const MOST_STARTS = 200;
/** Two thirds of it are a time that nobody would sleep for. */
const STOP_GRACE = 1_513;

/** Runs one task of an agent in memory, on the journey's own code, in virtual time. */
export async function runAgent(agent: Agent, input: JsonObject, options: RunOptions = {}): Promise<AgentRun> {
  const crash = crashOf(options);
  return runWith(agent, input, options, scripted(options.model ?? []), crash ? [crash] : []);
}

/**
 * The same with a model of one's own, and a process that dies several times, at each point once. `stored`: what the journal
 * of an earlier version has already.
 */
export async function runWith(
  agent: Agent,
  input: JsonObject,
  options: RunOptions,
  model: ScriptedModel,
  crashes: readonly Crash[] = [],
  stored: readonly Entry[] = [],
): Promise<AgentRun> {
  const { id = "test" } = options;
  // An agent's time-out is measured in real time, of which there is none here.
  const { timeout: _, ...limits } = agent.limits;
  const tested: Agent = { ...agent, limits };
  const began = Date.UTC(2030, 0, 1);
  let now = began;
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += Math.max(0, ms);
    },
  };
  const settings = makeSettings({ namespace: "test", stopGrace: STOP_GRACE });
  const store = memoryStore();
  const deps: Deps = {
    store,
    bus: quietBus(),
    clock,
    log: () => {},
    settings,
    runner: "test",
    model,
    lanesOf: () => 1,
    meter: { count: () => {}, flush: async () => {} },
    sealer: { seal: () => "", isGenuine: () => true, isOfKnownKey: () => true, acceptsUnsealed: true },
  };
  const mark = () => ({ now, stamp: crypto.randomUUID(), by: "test" });
  const change = async (...events: TaskEvent[]): Promise<Task> => {
    const seen = await store.get(id);
    if (!seen) throw new Error(`no task ${id}`);
    const task = events.reduce((current, event) => apply(current, event, mark()), seen.task);
    await store.replace(task, seen.revision);
    return task;
  };

  const { now: at, stamp, by } = mark();
  const inputHash = hashInput(input);
  await store.create(submitted({ id, agent: "test", lane: 0, input, inputHash, at, stamp, by }, QUEUE));
  if (stored.length > 0) {
    const head = emptyHead({ id, fence: 0, epoch: 0, createdAt: at }, agent.version, stamp);
    await store.putHead({ ...head, count: stored.length, recent: stored }, undefined);
  }
  const left = [...crashes];
  for (let starts = 0; ; ) {
    const task = (await store.get(id))?.task as Task;
    if (isFinal(task)) break;
    const next = await whatNext(deps, task, options, change, clock);
    if (next === "stays") break;
    if (next === "moved") continue;
    if (++starts > MOST_STARTS)
      throw new PawlError("crash_loop", `The handler was started ${MOST_STARTS} times and never ended`);
    model.begins(await answersStored(deps, id));
    const isDead = await execute(deps, tested, id, left[0], change);
    if (isDead) left.shift();
  }
  return report(deps, id, now - began, model.requests);
}

/** What is left to the world: time passes, people answer, children end. */
async function whatNext(
  deps: Deps,
  task: Task,
  options: RunOptions,
  change: (...events: TaskEvent[]) => Promise<Task>,
  clock: { now(): number; sleep(ms: number): Promise<void> },
): Promise<"runs" | "moved" | "stays"> {
  switch (task.state) {
    case "scheduled":
      await clock.sleep(task.dueAt - clock.now());
      await change({ type: "dispatch", queue: QUEUE });
      return "moved";
    case "waiting": {
      for (const name of task.waitingFor) {
        const value = answerTo(name, options) ?? ((await endChild(deps, name, options)) ? null : undefined);
        if (value === undefined) continue;
        await change({ type: "signal", name, value }, { type: "wake", queue: QUEUE });
        return "moved";
      }
      if (task.dueAt === undefined) return "stays";
      await clock.sleep(task.dueAt - clock.now());
      await change({ type: "wake", queue: QUEUE });
      return "moved";
    }
    case "in_doubt": {
      const told = options.resolve?.(task.effect);
      if (told === undefined) return "stays";
      const answer = typeof told === "boolean" ? { happened: told } : { happened: true, ...told };
      await change({ type: "resolve", to: "dispatched", queue: QUEUE, answer });
      return "moved";
    }
    default:
      return "runs";
  }
}

/** One execution. True when it died where the test wanted it to. */
async function execute(
  deps: Deps,
  agent: Agent,
  id: string,
  crash: Crash | undefined,
  change: (...events: TaskEvent[]) => Promise<Task>,
): Promise<boolean> {
  const lost = new AbortController();
  const check = () => lost.signal.throwIfAborted();
  const lease = {
    lost: lost.signal,
    cancelled: new AbortController().signal,
    check,
    stopBeats: async () => {},
  };
  const die = () => lost.abort(new PawlError("lease_lost", "The process died, as the test wanted"));
  const sleep: typeof deps.clock.sleep = (ms, signal) => {
    // Code that has to end takes real time, unlike what waits; not in a process that is dead.
    const isGrace = ms === graceOf(deps.settings) && !lost.signal.aborted;
    return isGrace ? systemClock.sleep(ms, signal) : deps.clock.sleep(ms);
  };
  const mortal = { ...deps, clock: { ...deps.clock, sleep }, store: dyingStore(deps.store, crash, die) };
  const before = (await deps.store.get(id))?.task as Task;
  const holder = {
    queue: QUEUE,
    seq: before.dispatches,
    token: crypto.randomUUID(),
    runner: "test",
    via: "test",
    lease: 0,
  };
  const taken = await change({ type: before.state === "running" ? "takeover" : "claim", ...holder });
  if (taken.state === "running" && !taken.started) await change({ type: "start", lease: 0 });
  const held = await deps.store.get(id);
  const stop = new AbortController().signal;
  const execution = {
    deps: mortal,
    agent,
    held,
    lease,
    stop,
    delivery: { deliveries: 1 },
  } as unknown as Holding;
  const ran = await run(execution);
  if (!lost.signal.aborted) await record({ ...execution, deps }, ran);
  return lost.signal.aborted;
}

/** Children are only stored: what becomes of them is the test's to say. */
function quietBus(): Bus {
  const quiet = { name: "none", publish: async () => ({ kind: "stored", seq: 1 }), announce: () => {} };
  return quiet as unknown as Bus;
}

async function report(
  deps: Deps,
  id: string,
  elapsed: number,
  requests: readonly TurnRequest[],
): Promise<AgentRun> {
  const task = (await deps.store.get(id))?.task as Task;
  const journal = (await readJournal(deps, id, () => {}))?.entries ?? [];
  const { state, executions, spent } = task;
  return {
    state,
    ...(task.state === "completed" && { result: task.result }),
    ...(task.state === "failed" && { error: task.error }),
    ...(task.state === "waiting" && { waitingFor: task.waitingFor }),
    ...(task.state === "waiting" && task.summary !== undefined && { summary: task.summary }),
    journal,
    executions,
    elapsed,
    spent,
    ...(task.logs && { logs: task.logs }),
    history: task.history,
    requests,
  };
}
