import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { emptyHead } from "../../shared/journal/entries.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { apply } from "../../shared/task/transitions.ts";
import { raw } from "../support/servers/raw.ts";
import { stores, testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const AGENT = "a";
const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "test" });

function due(id: string): Task {
  const { now: at, stamp, by } = mark();
  const task = submitted({ id, agent: AGENT, lane: 0, input: {}, inputHash: "h", at, stamp, by }, "Q");
  return apply(task, { type: "rollback", dueAt: Date.now() - 1_000, note: "test" }, mark());
}

function without(id: string, field: string): string {
  const { [field as "settled"]: _, ...rest } = due(id);
  return JSON.stringify(rest);
}

/** What somebody may write over a document, and what is said of it. */
const BAD: Record<string, [text: string, why: string]> = {
  "bad-text": ["no json", "it is not JSON"],
  "bad-empty": ["", "it is not JSON"],
  "bad-null": ["null", "it is null; it should be an object"],
  "bad-object": ["{}", "v is missing; it should be 1"],
  "bad-fields": [without("bad-fields", "settled"), "settled is missing; it should be a list"],
};
const GOOD = ["good-1", "good-2", "good-3"];
const IDS = [...GOOD, ...Object.keys(BAD)].sort();

/** All were written by Pawl once, so that indexes and fields know them, and then some were written over. */
async function spoilt(config: ReturnType<typeof world>["config"]) {
  const deps = await wired(config);
  const past = await raw(deps, config.project);
  const { cursor } = await deps.store.position();
  for (const id of IDS) await deps.store.create(due(id));
  for (const [id, [text]] of Object.entries(BAD)) await past.putTask(id, text);
  return Object.assign(deps, { past, cursor });
}

describe.each(stores)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("documents that can't be read", () => {
    let deps: Awaited<ReturnType<typeof spoilt>>;
    beforeAll(async () => {
      deps = await spoilt(world(nats, kind).config);
    });
    afterAll(() => deps[Symbol.asyncDispose]());

    test.each(Object.entries(BAD))(
      "%s asked for by its id is an error that says why",
      async (id, [text, why]) => {
        const error = await deps.store.get(id).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        const [found] = await deps.store.getMany([id]);
        expect(error).toMatchObject({
          name: "Unreadable",
          code: "document_unreadable",
          message: `Task ${id}'s document can't be read: ${why}`,
          key: id,
          why,
          text,
          revision: found?.revision,
        });
        expect(found).toMatchObject({ key: id, unreadable: why });
      },
    );

    test("one can be written over again by who saw its revision", async () => {
      await deps.past.putTask("mended", "{}");
      const { revision } = (await deps.store.getMany(["mended"]))[0] ?? {};
      expect((await deps.store.replace(due("mended"), revision as string)).kind).toBe("written");
      expect((await deps.store.get("mended"))?.task.id).toBe("mended");
    });

    test("a journal likewise", async () => {
      await deps.store.putHead(emptyHead({ id: "j", fence: 1, epoch: 0, createdAt: 0 }, 1, "s"));
      for (const text of [
        "no json",
        "null",
        "{}",
        JSON.stringify({
          ...emptyHead({ id: "j", fence: 1, epoch: 0, createdAt: 0 }, 1, "s"),
          recent: [null],
        }),
      ]) {
        await deps.past.putHead("j", text);
        await expect(deps.store.getHead("j"), text).rejects.toMatchObject({
          name: "Unreadable",
          key: "j",
          text,
        });
      }
    });

    test("a list goes on without them, and names them", async () => {
      const tasks: string[] = [];
      const unreadable = new Map<string, string>();
      for (let cursor: string | undefined, pages = 0; pages === 0 || cursor; pages++) {
        const page = await deps.store.list({}, 2, cursor);
        tasks.push(...page.tasks.map(({ id }) => id));
        for (const { key, why } of page.unreadable ?? []) unreadable.set(key, why);
        cursor = page.cursor;
        expect(pages).toBeLessThan(20);
      }
      expect(tasks.filter((id) => id !== "mended").sort()).toEqual(GOOD);
      expect(unreadable).toEqual(new Map(Object.entries(BAD).map(([id, [, why]]) => [id, why])));
      expect((await deps.store.list({ state: "scheduled" }, 100)).tasks.length).toBeGreaterThanOrEqual(3);
    });

    test("they are among the changes", async () => {
      for (const from of [undefined, deps.cursor]) {
        const found = new Map<string, string | undefined>();
        for (let cursor = from, isLast = false; !isLast; ) {
          const page = await deps.store.changes(cursor, 3);
          for (const one of page.documents)
            found.set(one.key, "unreadable" in one ? one.unreadable : undefined);
          ({ cursor, isLast } = page);
        }
        for (const id of GOOD) expect(found.has(id) && found.get(id) === undefined, id).toBe(true);
        for (const [id, [, why]] of Object.entries(BAD)) expect(found.get(id)).toBe(why);
      }
    });

    test("a sweep finds what is due behind them, page by page", async () => {
      for (const limit of [1, 2, 100]) {
        const { tasks } = await deps.store.due(AGENT, "scheduled", { after: 0, until: Date.now() }, limit);
        expect(tasks.length, String(limit)).toBeGreaterThanOrEqual(Math.min(limit, 3));
        expect(tasks.every(({ task }) => !task.id.startsWith("bad"))).toBe(true);
      }
    });

    test("a document under another key than its id is nobody's: named, and not acted on", async () => {
      await deps.past.putTask("here", JSON.stringify(due("elsewhere")));
      await expect(deps.store.get("here")).rejects.toMatchObject({ code: "document_altered" });
      expect((await deps.store.getMany(["here"]))[0]).toMatchObject({
        key: "here",
        task: { id: "elsewhere" },
        altered: "The document under here is that of task elsewhere",
      });
    });
  });

  test.skipIf(!here)("a sweep of an agent dispatches the rest", async () => {
    await using deps = await spoilt(world(nats, kind).config);
    const { namespace, generation } = deps.settings;
    await deps.bus.ensure({ namespace, agent: AGENT, lane: 0, generation });
    expect(await dispatchDue(deps, AGENT)).toBe(GOOD.length);
    for (const id of GOOD) expect((await deps.store.get(id))?.task.state).toBe("dispatched");
  });
});

describe.each(stores.filter(({ kind }) => kind !== "nats-kv"))("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "a document without json is none; nor does one stop a list whose time is no time",
    async () => {
      const { config } = world(nats, kind);
      await using deps = await wired(config);
      const past = await raw(deps, config.project);
      for (const id of ["a", "b", "c"]) await deps.store.create(due(id));
      await past.putTask("a", "", { json: { integerValue: "1" } });
      await past.putTask("b", JSON.stringify(due("b")), { updatedAt: { stringValue: "yesterday" } });
      await expect(deps.store.get("a")).rejects.toMatchObject({ why: "it has no json field", text: "" });
      const page = await deps.store.list({}, 1);
      expect([...page.tasks.map(({ id }) => id), ...(page.unreadable ?? []).map(({ key }) => key)]).toEqual([
        "c",
      ]);
      const next = await deps.store.list({}, 1, page.cursor);
      expect(next.unreadable).toEqual([{ key: "a", why: "it has no json field" }]);
      expect((await deps.store.list({}, 1, next.cursor)).tasks).toEqual([]);
    },
  );

  test.skipIf(!here)("what is due by its field alone is not given back, and hides nothing", async () => {
    const { config } = world(nats, kind);
    await using deps = await wired(config);
    const past = await raw(deps, config.project);
    for (const id of ["a", "b", "c"]) {
      await deps.store.create(due(id));
      const done = submitted(
        { id, agent: AGENT, lane: 0, input: {}, inputHash: "h", at: 1, stamp: "s", by: "t" },
        "Q",
      );
      await past.putTask(id, JSON.stringify(done));
    }
    await deps.store.create(due("really"));
    const { tasks } = await deps.store.due(AGENT, "scheduled", { after: 0, until: Date.now() }, 2);
    expect(tasks.map(({ task }) => task.id)).toEqual(["really"]);
  });
});

test("a bucket's walk for what has expired goes on past them, and leaves them", async () => {
  const { config } = world(nats, "nats-kv", { retention: 14 * 86_400_000 });
  await using deps = await spoilt(config);
  const later = Date.now() + 15 * 86_400_000;
  const ended = apply(due("ended"), { type: "cancel", ended: true, expiresAt: Date.now() }, mark());
  await deps.store.create(ended);
  expect(await deps.store.expire(later, 100)).toBe(1);
  expect(await deps.store.get("ended")).toBeUndefined();
  const left = await deps.store.getMany(IDS);
  expect(left.map((one) => one?.key)).toEqual(IDS);
});
