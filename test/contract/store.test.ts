import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freeze } from "../../infra/drills/faults/freeze.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { emptyHead } from "../../shared/journal/entries.ts";
import { DOCUMENT_LIMIT } from "../../shared/settings/settings.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Scheduled, Task } from "../../shared/task/document.ts";
import type { SweptState } from "../../shared/task/due.ts";
import { apply } from "../../shared/task/transitions.ts";
import { hashInput, type JsonObject } from "../../shared/values/json.ts";
import { deafServer } from "../support/faults/deaf.ts";
import {
  type EmptyStore,
  emptyStore,
  emulatorHost,
  everyStore,
  stores,
  testNats,
  wired,
  world,
} from "../support/servers/stores.ts";

const mark = () => ({ now: Date.now(), stamp: randomUUID(), by: "test" });

async function newTask(input: JsonObject = { n: 1 }, id = `t-${randomUUID()}`) {
  const { now: at, stamp, by } = mark();
  const inputHash = hashInput(input);
  return submitted({ id, agent: "recorder", lane: 0, input, inputHash, at, stamp, by }, "Q");
}

function claimed(task: Task, token: string): Task {
  return apply(task, { type: "claim", queue: "Q", seq: 1, token, runner: "r", via: "s", lease: 10 }, mark());
}

function scheduled(task: Task, dueAt: number): Scheduled {
  return apply(task, { type: "rollback", dueAt, note: "test" }, mark()) as Scheduled;
}

/** As it was written, with the seal that the write has put on it. */
const seal = (stamp: string) => ({ own: expect.any(String), before: "", stamp });
const sealed = <T extends { stamp: string }>(one: T): T => ({ ...one, seal: seal(one.stamp) });

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe.each(everyStore)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("store contract", () => {
    let deps: EmptyStore;
    beforeAll(async () => {
      deps = await emptyStore(nats, kind);
    });
    afterAll(() => deps[Symbol.asyncDispose]());

    test("what is created is read back, whole, at the revision that the create returned", async () => {
      const task = await newTask();
      const created = await deps.store.create(task);
      expect(created.kind).toBe("written");
      const found = await deps.store.get(task.id);
      expect(found?.task).toEqual(sealed(task));
      expect(found?.revision).toBe(created.kind === "written" && created.revision);
    });

    test("a missing document reads as undefined, and can't be replaced", async () => {
      expect(await deps.store.get("nobody")).toBeUndefined();
      const there = await newTask();
      const created = await deps.store.create(there);
      if (created.kind !== "written") throw new Error("not created");
      const missing = await newTask();
      expect(await deps.store.replace(missing, created.revision)).toEqual({ kind: "refused" });
      expect(await deps.store.get(missing.id)).toBeUndefined();
    });

    test("an id is created once", async () => {
      const task = await newTask();
      await deps.store.create(task);
      expect(await deps.store.create({ ...task, stamp: "other" })).toEqual({ kind: "refused" });
      expect((await deps.store.get(task.id))?.task.stamp).toBe(task.stamp);
    });

    test("of 50 racing creates one wins", async () => {
      const task = await newTask();
      const tries = Array.from({ length: 50 }, (_, i) => ({ ...task, stamp: `s${i}` }));
      const results = await Promise.all(tries.map((one) => deps.store.create(one)));
      expect(results.filter((result) => result.kind === "written")).toHaveLength(1);
      const winner = tries[results.findIndex((result) => result.kind === "written")];
      expect((await deps.store.get(task.id))?.task.stamp).toBe(winner?.stamp);
    });

    test("of 50 racing claims one wins, and what is stored is its own", async () => {
      const task = await newTask();
      const created = await deps.store.create(task);
      if (created.kind !== "written") throw new Error("not created");
      const claims = Array.from({ length: 50 }, (_, i) => claimed(task, `token-${i}`));
      const results = await Promise.all(claims.map((one) => deps.store.replace(one, created.revision)));
      const wins = results.flatMap((result, i) => (result.kind === "written" ? [i] : []));
      expect(wins).toHaveLength(1);
      expect(await deps.store.get(task.id)).toMatchObject({ task: { token: `token-${wins[0]}`, fence: 1 } });
    });

    test("a stale revision writes nothing", async () => {
      const task = await newTask();
      const created = await deps.store.create(task);
      if (created.kind !== "written") throw new Error("not created");
      const second = await deps.store.replace(claimed(task, "first"), created.revision);
      expect(second.kind).toBe("written");
      expect(await deps.store.replace(claimed(task, "stale"), created.revision)).toEqual({ kind: "refused" });
      expect(await deps.store.get(task.id)).toMatchObject({ task: { token: "first" } });
    });

    test("a revision that is none refuses the write", async () => {
      // So that no revision of the task's own is the first that a store gives.
      await deps.store.create(await newTask());
      const task = await newTask();
      await deps.store.create(task);
      for (const seen of [
        "",
        "0",
        "-1",
        "x",
        "1",
        "1.5",
        "NaN",
        "1e9",
        "99999999999999999999",
        "1.000000000",
      ]) {
        expect(await deps.store.replace(claimed(task, seen), seen), seen).toEqual({ kind: "refused" });
      }
      expect((await deps.store.get(task.id))?.task).toEqual(sealed(task));
    });

    test("an identical write is still guarded: the second finds its revision stale", async () => {
      const task = await newTask();
      const created = await deps.store.create(task);
      if (created.kind !== "written") throw new Error("not created");
      // As the journey makes them: the same change, each with a stamp of its own.
      const same = () => apply(task, { type: "publishDuplicate", layer: "window" }, mark());
      const results = await Promise.all(
        Array.from({ length: 5 }, () => deps.store.replace(same(), created.revision)),
      );
      expect(results.filter((result) => result.kind === "written")).toHaveLength(1);
      expect((await deps.store.get(task.id))?.task.publishDuplicates.window).toBe(1);
    });

    test("a document near 1 MiB is kept whole", async () => {
      const empty = JSON.stringify(await newTask({ text: "" })).length;
      const task = await newTask({ text: "é".repeat(Math.floor((DOCUMENT_LIMIT - empty) / 2) - 8) });
      const created = await deps.store.create(task);
      if (created.kind !== "written") throw new Error("not created");
      const next = apply(task, { type: "publishDuplicate", layer: "window" }, mark());
      expect((await deps.store.get(task.id))?.task).toEqual(sealed(task));
      const trimmed = { ...next, input: { text: "short" } };
      expect((await deps.store.replace(trimmed, created.revision)).kind).toBe("written");
    });

    test("unicode, control characters, lone surrogates, odd keys and nesting come back as they were", async () => {
      const input: JsonObject = {
        text: "Grüße 你好 👩‍👩‍👧 \u202e rtl",
        binaryish: Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join(""),
        lone: "\ud800 and \udfff",
        "": "empty key",
        __name__: "reserved by Firestore",
        "a.b/c`d": "path characters",
        nested: [[1, [2, [3]]], [[]], [{}]],
        deep: Array.from({ length: 30 }).reduce<JsonObject>((inner) => ({ inner }), {}),
        numbers: [0, -0.5, 1e300, 9007199254740991, -1e-300],
        nothing: null,
      };
      const task = await newTask(input);
      await deps.store.create(task);
      expect((await deps.store.get(task.id))?.task.input).toEqual(input);
    });

    test("every id that is allowed is a document", async () => {
      for (const id of ["-", "_", "a", "Z".repeat(128), "__x", "0-9_", "null"]) {
        const task = await newTask({ id }, id);
        expect(await deps.store.create(task), id).toMatchObject({ kind: "written" });
        expect((await deps.store.get(id))?.task.id).toBe(id);
      }
    });

    test("due tasks are those scheduled for now or earlier, of the agent asked for", async () => {
      await using own = await emptyStore(nats, kind);
      const now = Date.now();
      const make = async (dueAt: number) => {
        const task = await newTask();
        const created = await own.store.create(task);
        if (created.kind !== "written") throw new Error("not created");
        const later = scheduled(task, dueAt);
        await own.store.replace(later, created.revision);
        return later.id;
      };
      const ids = [await make(now - 2000), await make(now - 1000), await make(now + 60_000)];
      const dueUntil = async (agent: string, state: SweptState, until: number, limit = 10) =>
        (await own.store.due(agent, state, { after: 0, until }, limit)).tasks;
      const due = await dueUntil("recorder", "scheduled", now);
      expect(due.map((stored) => stored.task.id).sort()).toEqual(ids.slice(0, 2).sort());
      expect(await dueUntil("recorder", "scheduled", now, 1)).toHaveLength(1);
      expect(await dueUntil("other", "scheduled", now)).toEqual([]);
      // Dispatched meanwhile: no longer due, and its revision is the one to write on.
      const [first] = due;
      if (!first) throw new Error("none due");
      const dispatched = apply(first.task, { type: "dispatch", queue: "Q" }, mark());
      expect((await own.store.replace(dispatched, first.revision)).kind).toBe("written");
      const left = await dueUntil("recorder", "scheduled", now);
      expect(left.map((stored) => stored.task.id)).toEqual([due[1]?.task.id]);
      // Dispatched, and claimed by nobody for a minute: to be looked at again.
      expect(await dueUntil("recorder", "dispatched", now + 30_000)).toEqual([]);
      const orphans = await dueUntil("recorder", "dispatched", now + 120_000);
      expect(orphans.map((stored) => stored.task.id)).toEqual([first.task.id]);
    });

    test("tasks are listed by agent and state, page by page, each once", async () => {
      await using own = await emptyStore(nats, kind);
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) {
        const task = { ...(await newTask()), agent: i % 2 ? "odd" : "even" };
        await own.store.create(task);
        ids.push(task.id);
      }
      const all: string[] = [];
      for (let cursor: string | undefined, pages = 0; pages === 0 || cursor; pages++) {
        const page = await own.store.list({}, 3, cursor);
        all.push(...page.tasks.map((task) => task.id));
        cursor = page.cursor;
        expect(pages).toBeLessThan(4);
      }
      expect(all.toSorted()).toEqual(ids.toSorted());
      expect((await own.store.list({ agent: "odd" }, 10)).tasks).toHaveLength(3);
      expect((await own.store.list({ agent: "odd", state: "dispatched" }, 10)).tasks).toHaveLength(3);
      expect((await own.store.list({ state: "failed" }, 10)).tasks).toEqual([]);
      // What a list costs its caller: a bucket has no indexes, so documents are looked at that nobody asked for.
      const { looked } = await own.store.list({ agent: "nobody" }, 10);
      expect(looked).toBe({ "nats-kv": 7, "nats-kv, separate": 0 }[kind as string]);
      for (const wrong of ["", "x y", "../../etc", "1.", `${"9".repeat(20)}.x`, "1.a/b"])
        await expect(own.store.list({}, 3, wrong)).rejects.toMatchObject({ code: "input_invalid" });
    });

    test("a journal's head is created once, and replaced only by who saw it last", async () => {
      const id = `t-${randomUUID()}`;
      const head = (stamp: string) => emptyHead({ id, fence: 1, epoch: 0, createdAt: 0 }, 1, stamp);
      expect(await deps.store.getHead(id)).toBeUndefined();
      const creates = await Promise.all(
        Array.from({ length: 20 }, (_, i) => deps.store.putHead(head(`c${i}`))),
      );
      const created = creates.find((result) => result.kind === "written");
      if (created?.kind !== "written") throw new Error("not created");
      expect(creates.filter((result) => result.kind === "written")).toHaveLength(1);
      const seen = (await deps.store.getHead(id))?.revision;
      expect(seen).toBe(created.revision);
      const writes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => deps.store.putHead(head(`w${i}`), seen)),
      );
      const won = writes.findIndex((result) => result.kind === "written");
      expect(writes.filter((result) => result.kind === "written")).toHaveLength(1);
      expect((await deps.store.getHead(id))?.head).toEqual(sealed(head(`w${won}`)));
      expect(await deps.store.putHead(head("stale"), seen)).toEqual({ kind: "refused" });
    });
  });
});

describe.each(stores)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("an unavailable server is an error that says so, within the time-out", async () => {
    // Worse than a closed port, which fails at once.
    await using dead = await deafServer();
    const isKv = kind === "nats-kv";
    await using own = await testNats();
    const { config } = world(
      isKv ? own : nats,
      kind,
      { requestTimeout: 1_000 },
      isKv ? emulatorHost : dead.host,
    );
    const deps = await wired(config);
    if (isKv) await freeze(own.pid);
    const begun = Date.now();
    const task = await newTask();
    for (const work of [
      () => deps.store.get("x"),
      () => deps.store.create(task),
      () => deps.store.replace(task, isKv ? "7" : "1.000000001"),
    ]) {
      await expect(work()).rejects.toMatchObject({ code: "store_unavailable" });
    }
    expect(Date.now() - begun).toBeLessThan(15_000);
    if (isKv) process.kill(own.pid, "SIGCONT");
    await deps[Symbol.asyncDispose]();
  });
});
