import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { agentOf, type Bench, bench } from "../support/bench.ts";
import { ahead, namesOf, patched, reconciled } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Another reconciliation is made between any two reads of records and texts, once. */
function besides(b: Bench, nth: number): { isMade: () => boolean } {
  const { getRecord, getText } = b.deps.store;
  const calm = { ...b.deps };
  let reads = 0;
  let isMade = false;
  const then = async <T>(answer: Promise<T>): Promise<T> => {
    const read = await answer;
    if (!isMade && ++reads === nth) {
      isMade = true;
      await reconciled(calm);
    }
    return read;
  };
  patched(b, {
    getRecord: (name) => then(getRecord(name)),
    getText: (name) => then(getText(name)),
  });
  return { isMade: () => isMade };
}

describe("a reconciliation beside another one accuses nobody", () => {
  test.each(["first", "second"])(
    "the %s of a namespace, at every read of what is remembered",
    async (which) => {
      for (let nth = 1, isOver = false; !isOver; nth++) {
        await using b = await bench(
          nats,
          "nats-kv",
          agentOf(() => "done"),
        );
        await b.submit({}, { id: "t" });
        await b.drain();
        ahead(b, 600_000);
        if (which === "second") await reconciled(b.deps);
        const { isMade } = besides(b, nth);
        expect(namesOf(await reconciled(b.deps)), `at read ${nth}`).toEqual([]);
        isOver = !isMade();
        if (nth === 1) expect(isMade()).toBe(true);
      }
    },
  );
});
