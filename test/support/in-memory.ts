import type { Agent } from "../../shared/agent.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { known } from "../../shared/journal/entries.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import type { Bus } from "../../shared/ports/bus.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Holding } from "../../shared/runner/execution.ts";
import { record } from "../../shared/runner/record.ts";
import { run } from "../../shared/runner/run.ts";
import { graceOf, makeSettings } from "../../shared/settings/settings.ts";
import type { Task } from "../../shared/task/document.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { childSignal } from "../../shared/task/signals.ts";
import { isFinal } from "../../shared/task/table.ts";
import { apply } from "../../shared/task/transitions.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";

/** Two thirds of it are a time that nobody would sleep for. */
const STOP_GRACE = 1_513;

/** The process dies at so manieth write of a journal, before or after it is stored. */
export interface Death {
  readonly at: number;
  readonly when: "before" | "after";
}

/**
 * Tasks in memory, on Pawl's own submit, handler calls, records and operations, in virtual time: nothing moves but by the
 * test's word. For what broker and leases have no part in.
 */
export function inMemory(agents: Readonly<Record<string, Agent>>, model = scripted([])) {
  let now = Date.UTC(2030, 0, 1);
  const settings = makeSettings({ namespace: "memory", stopGrace: STOP_GRACE });
  const sleep = async (ms: number, signal?: AbortSignal) => {
    // Code that has to end takes real time, unlike what waits.
    if (ms === graceOf(settings)) return systemClock.sleep(ms, signal);
    now += Math.max(0, ms);
  };
  const store = memoryStore();
  const deps: Deps = {
    store,
    bus: quietBus(),
    clock: { now: () => now, monotonic: () => now, sleep },
    log: () => {},
    settings,
    runner: "r1",
    model,
    lanesOf: (name) => (name in agents ? 1 : undefined),
    meter: { count: () => {}, flush: async () => {} },
    sealer: { seal: () => "", isGenuine: () => true, isOfKnownKey: () => true, acceptsUnsealed: true },
  };
  const task = async (id: string): Promise<Task> => {
    const found = await store.get(id);
    if (!found) throw new Error(`no task ${id}`);
    return found.task;
  };
  const change = async (id: string, event: TaskEvent): Promise<Task> => {
    const seen = await store.get(id);
    if (!seen) throw new Error(`no task ${id}`);
    const next = apply(seen.task, event, { now, stamp: crypto.randomUUID(), by: "r1" });
    await store.replace(next, seen.revision);
    return next;
  };

  /** One execution. True when it died. */
  const execute = async (id: string, death?: Death): Promise<boolean> => {
    const before = await task(id);
    const agent = untimed(agents[before.agent] as Agent);
    const token = crypto.randomUUID();
    const holder = { queue: "Q", seq: before.dispatches, token, runner: "r1", via: "s", lease: 0 };
    const taken = await change(id, { type: before.state === "running" ? "takeover" : "claim", ...holder });
    if (taken.state === "running" && !taken.started) await change(id, { type: "start", lease: 0 });
    const lost = new AbortController();
    const lease = {
      lost: lost.signal,
      cancelled: new AbortController().signal,
      check: () => lost.signal.throwIfAborted(),
      stopBeats: async () => {},
    };
    const mortal = {
      ...deps,
      store: dying(store, death, () =>
        lost.abort(new PawlError("lease_lost", "The process died, as the test wanted")),
      ),
    };
    const execution = {
      deps: mortal,
      agent,
      held: await store.get(id),
      lease,
      stop: new AbortController().signal,
      delivery: { deliveries: 1 },
    } as unknown as Holding;
    const ran = await run(execution);
    if (lost.signal.aborted) return true;
    await record({ ...execution, deps }, ran);
    const ended = await task(id);
    if (isFinal(ended) && ended.parent !== undefined)
      await signal(deps, ended.parent, childSignal(id), null).catch(() => {});
    return false;
  };

  return {
    deps,
    model,
    task,
    /** Time passes. */
    pass: (ms: number) => {
      now += ms;
    },
    submit: (agent: string, id: string) => submit(deps, { agent, lanes: 1, id, input: {} }),
    execute,
    /** Until it is over, or waits for somebody or for its time: with deadlines that have passed come true. */
    run: async (id: string, death?: Death): Promise<Task> => {
      let dies = death;
      for (;;) {
        const { state, ...at } = await task(id);
        const isDue = "dueAt" in at && at.dueAt !== undefined && at.dueAt <= now;
        if (state === "scheduled" && isDue) await change(id, { type: "dispatch", queue: "Q" });
        else if (state === "waiting" && isDue) await change(id, { type: "wake", queue: "Q" });
        else if (state !== "dispatched" && state !== "running") return task(id);
        else if (await execute(id, dies)) dies = undefined;
      }
    },
    /** What the journal knows, by key. */
    known: async (id: string) => known((await readJournal(deps, id, () => {}))?.entries ?? []),
    entries: async (id: string) => (await readJournal(deps, id, () => {}))?.entries ?? [],
  };
}

/** A time-out is measured in real time, of which there is none here. */
function untimed(agent: Agent): Agent {
  const { timeout: _, ...limits } = agent.limits;
  return { ...agent, limits };
}

function dying(store: TaskStore, death: Death | undefined, die: () => void): TaskStore {
  if (!death) return store;
  let writes = 0;
  const never = (): never => {
    die();
    throw new PawlError("lease_lost", "The process died, as the test wanted");
  };
  return {
    ...store,
    putHead: async (head, seen) => {
      const isNow = ++writes === death.at;
      if (isNow && death.when === "before") return never();
      const result = await store.putHead(head, seen);
      return isNow ? never() : result;
    },
  };
}

function quietBus(): Bus {
  const quiet = {
    name: "none",
    publish: async () => ({ kind: "stored", seq: 1 }),
    announce: () => {},
    remove: async () => {},
  };
  return quiet as unknown as Bus;
}
