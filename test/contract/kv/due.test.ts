import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { natsKv } from "../../../shared/adapters/kv/nats-kv.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import { scheduled, submitted } from "../../../shared/task/create.ts";
import type { Task } from "../../../shared/task/document.ts";
import { apply } from "../../../shared/task/transitions.ts";
import { hooked } from "../../support/faults/hooked.ts";
import { testNats, wired, world } from "../../support/servers/stores.ts";
import { later } from "../../support/time/clocks.ts";

const AGENT = "a";
/** Long enough for an entry that leads nowhere to be removed. */
const LATER = 121_000;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const mark = (now = Date.now()) => ({ now, stamp: crypto.randomUUID(), by: "test" });

function dispatched(id: string, at = Date.now()): Task {
  const { stamp, by } = mark();
  return submitted({ id, agent: AGENT, lane: 0, input: {}, inputHash: "h", at, stamp, by }, "Q");
}

function completed(task: Task): Task {
  const holder = { queue: "Q", seq: 1, token: "t", runner: "r", via: "s", lease: 10 };
  const running = apply(task, { type: "claim", ...holder }, mark());
  return apply(running, { type: "complete", result: 1, expiresAt: Date.now() + 9e9 }, mark());
}

/** A bucket with documents and entries as writers leave them, but faster. */
async function filled(tasks: readonly Task[]) {
  const { config } = world(nats, "nats-kv");
  const deps = await wired(config);
  const { namespace } = config.settings;
  const kv = await new Kvm(deps.nc).open(`${namespace}-tasks`);
  for (const task of tasks) {
    deps.nc.publish(
      `$KV.${namespace}-tasks.due.${AGENT}.dispatched.${task.id}`,
      String(task.createdAt + 60_000),
    );
    deps.nc.publish(`$KV.${namespace}-tasks.task.${task.id}`, JSON.stringify(task));
  }
  // Stored after all of them, and confirmed.
  await kv.put("record.filled", "");
  const entries = async () => {
    const found: string[] = [];
    for await (const key of await kv.keys("due.>")) found.push(key.split(".").at(-1) as string);
    return found.sort();
  };
  const store = (before: (subject: string) => void | Promise<void>) =>
    natsKv(hooked(deps.nc, before), config.settings);
  return { deps, kv, entries, store };
}

const orphans = async (store: TaskStore) =>
  (await store.due(AGENT, "dispatched", { after: 0, until: Date.now() + LATER }, 100)).tasks
    .map(({ task }) => task.id)
    .sort();

test("what 2,000 finished tasks leave in the index is removed by few requests beside a read of each document, and what is still due is found", async () => {
  const live = ["t0", "t1999", "t700"];
  const tasks = Array.from({ length: 2_000 }, (_, i) => dispatched(`t${i}`));
  const b = await filled(tasks.map((task) => (live.includes(task.id) ? task : completed(task))));
  await using deps = b.deps;
  await deps.bus.ensure({ namespace: deps.settings.namespace, agent: AGENT, lane: 0, generation: 1 });
  const before = deps.nc.stats().outMsgs;
  // Their messages are gone: they get new ones.
  expect(await dispatchDue(later(deps, LATER), AGENT)).toBe(3);
  expect(deps.nc.stats().outMsgs - before).toBeLessThan(tasks.length + 100);
  expect(await b.entries()).toEqual(live);
  expect(await orphans(deps.store)).toEqual(live);
});

test("many that are still due in front of few that lead nowhere are left where they are", async () => {
  const tasks = [..."abcdefgh"].map((id) => dispatched(id));
  const b = await filled([...tasks, completed(dispatched("x")), completed(dispatched("y"))]);
  await using deps = b.deps;
  const revision = async () => (await b.kv.get(`due.${AGENT}.dispatched.a`))?.revision;
  const first = await revision();
  expect(await orphans(deps.store)).toEqual([..."abcdefgh"]);
  expect(await revision()).toBe(first);
  expect(await b.entries()).toEqual([..."abcdefghxy"]);
});

test("an entry that is written anew while the index is tidied stays, with its newer time", async () => {
  const [moved, revived] = [dispatched("moved"), dispatched("revived")];
  const done = Array.from({ length: 5 }, (_, i) => completed(dispatched(`d${i}`)));
  const b = await filled([moved, completed(revived), ...done]);
  await using deps = b.deps;
  const put = (id: string) => b.kv.put(`due.${AGENT}.dispatched.${id}`, "5");
  const store = await b.store(async (subject) => {
    // Right before it is moved; and right before the front is purged.
    if (subject.endsWith(".moved")) await put("moved");
    if (subject.includes("STREAM.PURGE")) {
      await put("revived");
      await b.kv.put("task.revived", JSON.stringify(revived));
    }
  });
  expect(await orphans(store)).toEqual(["moved"]);
  expect(await b.entries()).toEqual(["moved", "revived"]);
  expect((await b.kv.get(`due.${AGENT}.dispatched.moved`))?.string()).toBe("5");
  expect(await orphans(deps.store)).toEqual(["moved", "revived"]);
});

test("killed before any of its requests, and with others beside it, a sweep strands nobody", async () => {
  const live = ["t0", "t5"];
  for (let last = 0, isKilled = true; isKilled; last++) {
    const tasks = Array.from({ length: 9 }, (_, i) => dispatched(`t${i}`));
    const b = await filled(tasks.map((task) => (live.includes(task.id) ? task : completed(task))));
    await using deps = b.deps;
    let requests = 0;
    isKilled = false;
    const store = await natsKv(
      hooked(deps.nc, (subject) => {
        if (!/PURGE|\$KV/.test(subject) || requests++ < last) return;
        isKilled = true;
        throw new Error("killed here");
      }),
      deps.settings,
    );
    const found = await Promise.all([orphans(store), orphans(deps.store), orphans(deps.store)]);
    for (const ids of found) expect(ids).toEqual(live);
    expect(await orphans(deps.store)).toEqual(live);
    expect(await b.entries()).toEqual(live);
    expect(last).toBeLessThan(10);
  }
});

test("an entry whose document is still on its way stays, however soon a sweep looks for orphans", async () => {
  const b = await filled([completed(dispatched("x", Date.now() - 15_000))]);
  await using deps = b.deps;
  // As after a lane ran empty: what becomes an orphan within the next minute.
  await deps.store.due(AGENT, "dispatched", { after: 0, until: Date.now() + 50_000 }, 100);
  expect(await b.entries()).toEqual(["x"]);
});

test.each(["is refused", "never comes"])(
  "a write that %s does not hide when the document wants to be looked at",
  async (how) => {
    await using deps = await wired(world(nats, "nats-kv").config);
    const now = Date.now();
    const { stamp, by } = mark();
    const given = { id: "t", agent: AGENT, lane: 0, input: {}, inputHash: "h", at: now, stamp, by };
    const created = await deps.store.create(scheduled(given, now - 1_000));
    const revision = created.kind === "written" ? created.revision : "";
    const postponed = { ...scheduled(given, now + 3_600_000), stamp: crypto.randomUUID() };
    const postpone = { ...postponed, history: [...postponed.history, ...postponed.history] };
    if (how === "is refused") expect(await deps.store.replace(postpone, "999")).toEqual({ kind: "refused" });
    else {
      const isDocument = (subject: string) => subject.endsWith(".task.t");
      const dying = await natsKv(
        hooked(deps.nc, (subject) => {
          if (isDocument(subject)) throw new Error("it died");
        }),
        deps.settings,
      );
      await expect(dying.replace(postpone, revision)).rejects.toThrow();
    }
    const due = async (until: number) =>
      (await deps.store.due(AGENT, "scheduled", { after: 0, until }, 10)).tasks.map(({ task }) => task.id);
    expect(await due(now)).toEqual(["t"]);
    // Written, its new time holds.
    expect((await deps.store.replace(postpone, revision)).kind).toBe("written");
    expect(await due(now)).toEqual([]);
    expect(await due(now + 3_600_000)).toEqual(["t"]);
  },
);
