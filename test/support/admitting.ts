import { messageOf } from "../../shared/errors/errors.ts";
import { storeMeter } from "../../shared/meter/meter.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { LogFields } from "../../shared/ports/log.ts";
import type { Fill, TaskStore } from "../../shared/ports/store.ts";
import { admit } from "../../shared/quota/admit.ts";
import { makeSettings, type Settings } from "../../shared/settings/settings.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Completed } from "../../shared/task/document.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";

export const queue = { namespace: "pawl", agent: "echo", lane: 0, generation: 1 };

type Filled = () => Fill | undefined;
export const endless: Filled = () => undefined;

/** Any number of instances of the API over one store, on one clock that the test moves. */
export function admitting(
  given: Partial<Settings> = {},
  fill: Filled = endless,
  queueFill: Filled = endless,
) {
  let now = Date.UTC(2026, 10, 18, 12);
  const said: string[] = [];
  const calls = { list: 0, records: 0 };
  const looked: string[] = [];
  const store: TaskStore = memoryStore();
  const counted: TaskStore = {
    ...store,
    usage: async () => fill(),
    list: async (...asked) => {
      calls.list++;
      return store.list(...asked);
    },
    getRecord: async (name) => {
      looked.push(name);
      return store.getRecord(name);
    },
    putRecord: async (...asked) => {
      calls.records++;
      return store.putRecord(...asked);
    },
  };
  const pass = (ms: number) => {
    now += ms;
  };
  const clock = { now: () => now, monotonic: () => now, sleep: async (ms: number) => pass(ms) };
  const instance = () =>
    ({
      store: { ...counted },
      bus: { usage: async () => queueFill() },
      clock,
      log: (level: string, event: string, { of, reason }: LogFields = {}) => {
        if (level === "warn") said.push([event, of, reason].filter(Boolean).join(" "));
      },
      meter: storeMeter(store, () => {}),
      settings: makeSettings(given),
    }) as unknown as Deps;
  let ids = 0;
  const wanted = (more: object = {}) => ({
    id: `t${ids++}`,
    agent: "echo",
    owner: "ann" as string | undefined,
    queue,
    bytes: 100,
    isChild: false,
    isLater: false,
    ...more,
  });
  /** As `submit` does: asks, then stores. */
  const submit = async (deps: Deps, more: object = {}): Promise<string> => {
    const one = wanted(more);
    try {
      await admit(deps, one);
    } catch (error) {
      return messageOf(error);
    }
    const { id, agent, owner } = one;
    const input = { text: "x".repeat(one.bytes) };
    const meta = owner === undefined ? {} : { meta: { owner } };
    const envelope = { id, agent, lane: 0, ...meta, input, inputHash: "", at: now, stamp: id, by: "test" };
    await store.create(submitted(envelope, "q"));
    return "taken";
  };
  const end = async (id: string) => {
    const found = await store.get(id);
    if (!found) throw new Error(`no task ${id}`);
    const { queue: _, ...task } = found.task as typeof found.task & { queue: string };
    const over = { ...task, state: "completed", result: null, expiresAt: now } as unknown as Completed;
    await store.replace(over, found.revision);
  };
  return { store, instance, submit, wanted, end, pass, calls, looked, said, now: () => now };
}
