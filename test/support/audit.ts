import { append } from "../../shared/audit/trail.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { sealerOf } from "../../shared/seal/sealer.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";

/** What the trail needs, over a store in memory unless one is given. The clock's time is its holder's to set. */
export function auditDeps(store: TaskStore = memoryStore(), keys?: readonly string[]) {
  const time = { now: Date.UTC(2026, 10, 18) };
  const deps = {
    store,
    clock: { ...systemClock, now: () => time.now, sleep: async () => {} },
    log: () => {},
    settings: makeSettings(),
    runner: "r-1",
    actor: { name: "ann", token: "tok_0123456789abcdef", via: "api" },
    meter: { count: () => {}, flush: async () => {} },
    sealer: sealerOf(keys),
  } as unknown as Deps & { readonly actor: NonNullable<Deps["actor"]> };
  const add = (task: string, more: Partial<Parameters<typeof append>[1]> = {}) =>
    append(deps, { op: "cancel", task, actor: deps.actor, outcome: "done", ...more });
  const addMany = async (count: number) => {
    for (let i = 0; i < count; i++) await add(`t-${i}`);
  };
  return { deps, store, time, add, addMany };
}
