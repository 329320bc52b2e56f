import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import { natsKv } from "../../shared/adapters/kv/nats-kv.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { apply } from "../../shared/task/transitions.ts";
import { hooked } from "../support/faults/hooked.ts";
import { everything, owning, whatIsLeft } from "../support/servers/owned.ts";
import {
  emptyStore,
  emulatorHost,
  everyStore,
  isOnServer,
  stores,
  testNats,
  wired,
  world,
} from "../support/servers/stores.ts";

const DAY = 86_400_000;
/** When the tasks of a test have expired; and when a walk over them begins anew. */
const later = (days = 91) => Date.now() + days * DAY;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());
afterEach(() => void vi.unstubAllGlobals());

async function redriven(store: TaskStore, id: string): Promise<boolean> {
  const stored = await store.get(id);
  if (!stored) return false;
  const mark = { now: Date.now(), stamp: crypto.randomUUID(), by: "test" };
  const next = apply(stored.task, { type: "redrive", queue: "Q", fromScratch: false }, mark);
  return (await store.replace(next, stored.revision)).kind === "written";
}

/** A store of its own, with all that is in it; and the same store with something before each of its requests. */
async function opened(kind: StoreKind) {
  const { config } = world(nats, kind);
  const deps = await wired(config);
  const same = async (before: () => void | Promise<void>): Promise<TaskStore> => {
    if (kind === "nats-kv") return natsKv(hooked(deps.nc, before), config.settings);
    const { fetch } = globalThis;
    vi.stubGlobal("fetch", async (...args: Parameters<typeof fetch>) => {
      await before();
      return fetch(...args);
    });
    const { namespace, requestTimeout } = config.settings;
    const options = { projectId: config.project ?? "", namespace, requestTimeout };
    return firestoreRest({ ...options, origin: `http://${emulatorHost}`, token: async () => "owner" });
  };
  return { deps, same, everything: () => everything(deps, config.project) };
}

describe.each(everyStore)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("expiry", () => {
    test("all that an expired task owns goes with it, and nothing of others", async () => {
      const b = isOnServer(kind) ? await opened(kind) : undefined;
      await using deps = b?.deps ?? (await emptyStore(nats, kind));
      for (const id of ["t", "t-1", "1"]) await owning(deps, id);
      await owning(deps, "lives", 2, true);
      // As earlier versions kept reports and tokens.
      await deps.store.putPart("__reports__", "value-0", "x");
      await deps.store.putText("t", "x");
      await deps.store.putRecord("t", "x");
      expect(await deps.store.expire(Date.now(), 100)).toBe(0);
      expect(await deps.store.expire(later(89), 100)).toBe(0);
      for (const id of ["t", "t-1", "1", "lives"]) expect(await whatIsLeft(deps, id)).toBe("all");
      expect(await deps.store.expire(later(), 100)).toBe(3);
      for (const id of ["t", "t-1", "1"]) expect(await whatIsLeft(deps, id)).toBe("nothing");
      expect(await whatIsLeft(deps, "lives")).toBe("all");
      expect(await deps.store.getPart("__reports__", "value-0")).toBe("x");
      expect([await deps.store.getText("t"), (await deps.store.getRecord("t"))?.text]).toEqual(["x", "x"]);
      const all = (await b?.everything()) ?? [];
      expect(all.filter((one) => !/lives|__reports__|text[./]t$|-texts/.test(one))).toEqual([]);
      // Its id may be used again.
      await owning(deps, "t");
      expect(await whatIsLeft(deps, "t")).toBe("all");
    });

    test("no more than asked for go at once, and the rest with the next calls", async () => {
      await using deps = await emptyStore(nats, kind);
      await Promise.all(Array.from({ length: 7 }, (_, i) => owning(deps, `t${i}`, 1)));
      const counts: number[] = [];
      while (counts.at(-1) !== 0) counts.push(await deps.store.expire(later(), 3));
      expect(counts).toEqual([3, 3, 1, 0]);
      expect((await deps.store.list({}, 10)).tasks).toEqual([]);
    });

    test("a task that is redriven at the same moment stays whole", async () => {
      await using deps = await emptyStore(nats, kind);
      const ids = Array.from({ length: 12 }, (_, i) => `t${i}`);
      await Promise.all(ids.map((id) => owning(deps, id, 1)));
      const [, ...won] = await Promise.all([
        deps.store.expire(later(), 100),
        ...ids.map((id) => redriven(deps.store, id)),
      ]);
      for (const [i, id] of ids.entries())
        expect([id, await whatIsLeft(deps, id, 1)]).toEqual([id, won[i] ? "all" : "nothing"]);
    });

    test("parts are removed by name, one by one", async () => {
      await using deps = await emptyStore(nats, kind);
      for (const name of ["a", "b", "book-1"]) await deps.store.putPart("__x__", name, name);
      await deps.store.putPart("__xy__", "a", "other");
      await deps.store.removeParts("__x__", (name) => name === "a" || name.startsWith("book-"));
      const names = await Promise.all(["a", "b", "book-1"].map((name) => deps.store.getPart("__x__", name)));
      expect(names).toEqual([undefined, "b", undefined]);
      expect(await deps.store.getPart("__xy__", "a")).toBe("other");
    });
  });
});

/** Google's client shows nobody its requests; what it is asked for is the same code as with REST. */
describe.each(stores.filter(({ kind }) => kind !== "firestore"))("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("expiry, request by request", () => {
    test("a text that is written anew between the look and its removal stays", async () => {
      const b = await opened(kind);
      await using deps = b.deps;
      for (const name of ["x", "y"]) await deps.store.putText(name, "text");
      let looks: "none" | "seen" | "written" = "none";
      const store = await b.same(async () => {
        if (looks !== "seen") return;
        looks = "written";
        await deps.store.putText("x", "text");
      });
      await store.removeTexts((name) => {
        if (name === "x") looks = "seen";
        return true;
      });
      vi.unstubAllGlobals();
      expect([looks, await deps.store.getText("x"), await deps.store.getText("y")]).toEqual([
        "written",
        "text",
        undefined,
      ]);
    });

    test("killed at any of its requests it leaves nothing that is not found later", async () => {
      for (let last = 0, isKilled = true; isKilled; last++) {
        const b = await opened(kind);
        await using deps = b.deps;
        await Promise.all(["x", "y"].map((id) => owning(deps, id)));
        let requests = 0;
        isKilled = false;
        const dying = await b
          .same(() => {
            if (requests++ < last) return;
            isKilled = true;
            throw new Error("killed here");
          })
          .catch(() => undefined);
        await dying?.expire(later(), 100).catch(() => {});
        vi.unstubAllGlobals();
        // As if nothing had happened, or gone; never without its document and as if it were there.
        for (const id of ["x", "y"])
          if (await deps.store.get(id)) expect(await whatIsLeft(deps, id)).toBe("all");
        // One that is submitted now owns what it writes.
        const isNew = !(await deps.store.get("x"));
        if (isNew) await owning(deps, "x", 2, true);
        await deps.store.expire(later(), 100);
        await deps.store.expire(later(93), 100);
        if (isNew) expect(await whatIsLeft(deps, "x")).toBe("all");
        expect(
          (await b.everything()).filter((one) => !isNew || !/[./]x(\.|$)/.test(one)),
          `${last}`,
        ).toEqual([]);
        expect(last).toBeLessThan(80);
      }
    }, 60_000);

    test("redriven, or submitted anew, before any of its requests a task is whole", async () => {
      const ways = new Set<string>();
      for (let last = 0, isOver = false; !isOver; last++) {
        const b = await opened(kind);
        await using deps = b.deps;
        await owning(deps, "x");
        let requests = 0;
        isOver = true;
        const store = await b.same(async () => {
          if (requests++ !== last) return;
          isOver = false;
          const isThere = await redriven(deps.store, "x");
          if (!isThere) await owning(deps, "x", 2, true);
          ways.add(isThere ? "redriven" : "submitted");
        });
        await store.expire(later(), 100);
        vi.unstubAllGlobals();
        expect([last, await whatIsLeft(deps, "x")]).toEqual([last, isOver ? "nothing" : "all"]);
        expect(last).toBeLessThan(80);
      }
      expect([...ways].sort()).toEqual(["redriven", "submitted"]);
    }, 60_000);

    test("with nothing expired it is a request or two, however many live on", async () => {
      const b = await opened(kind);
      await using deps = b.deps;
      await Promise.all(Array.from({ length: 20 }, (_, i) => owning(deps, `t${i}`, 0, true)));
      let requests = 0;
      const store = await b.same(() => void requests++);
      const count = async (now: number) => {
        requests = 0;
        expect(await store.expire(now, 100)).toBe(0);
        return requests;
      };
      expect(await count(Date.now())).toBeLessThanOrEqual(4);
      expect(await count(Date.now())).toBeLessThanOrEqual(2);
      // They are old by now, and looked at: once.
      const first = await count(later());
      expect(await count(later())).toBeLessThanOrEqual(kind === "nats-kv" ? first / 2 : first);
    });
  });
});
