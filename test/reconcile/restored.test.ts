import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { accept } from "../../shared/dispatch/accept.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Stored } from "../../shared/ports/store.ts";
import { update } from "../../shared/retry/guarded-write.ts";
import type { Settlement, Task } from "../../shared/task/document.ts";
import { pageHash, pageName } from "../../shared/task/settled.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { ahead, namesOf, reconciled } from "../support/reconciling.ts";
import { raw } from "../support/servers/raw.ts";
import { testNats } from "../support/servers/stores.ts";

// What a person does about a finding: restores a document from a backup, or accepts it.

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const waiter = agentOf(async ({ input, step, waitFor }) => {
  await step("a", () => 1);
  if ((input as { waits?: boolean }).waits) await waitFor("x");
});

test("a task that was altered when a report was made, and is restored, is no finding of the next one", async () => {
  await using b = await bench(nats, "nats-kv", waiter);
  const past = await raw(b.deps, undefined);
  await b.submit({ waits: true }, { id: "t" });
  await b.drain();
  const task = await b.task("t");
  await past.putDocument("t", { ...task, input: { changed: true } });
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual(["altered t"]);
  await past.putDocument("t", task);
  ahead(b, 1_200_000);
  // Said by the report before, of the same week.
  const { report, ...rest } = await reconciled(b.deps);
  expect(namesOf({ report, ...rest })).toEqual(["altered t"]);
  expect(report.live).toEqual({ [AGENT]: { waiting: 1 } });
});

test("two documents that were swapped, and swapped back, are no finding of the next report", async () => {
  await using b = await bench(nats, "nats-kv", waiter);
  const past = await raw(b.deps, undefined);
  await b.submit({ waits: true }, { id: "t" });
  await b.submit({}, { id: "u" });
  await b.drain();
  const [t, u] = [await b.task("t"), await b.task("u")];
  await past.putDocument("t", u);
  await past.putDocument("u", t);
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual(["altered t", "altered u"]);
  await past.putDocument("t", t);
  await past.putDocument("u", u);
  ahead(b, 1_200_000);
  expect(namesOf(await reconciled(b.deps))).toEqual(["altered t", "altered u"]);
});

test("a document that a person accepted with a lower fence than its journal's was not put back", async () => {
  await using b = await bench(nats, "nats-kv", waiter);
  const past = await raw(b.deps, undefined);
  await b.submit({ waits: true }, { id: "t" });
  await b.drain();
  await past.putDocument("t", { ...(await b.task("t")), fence: 0, executions: 0 } as Task);
  await accept(b.deps, "t");
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
});

test("a task that was accepted, done and reported, and then put back, is not started again", async () => {
  const ran: string[] = [];
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ id }) => void ran.push(id)),
  );
  const past = await raw(b.deps, undefined);
  await b.submit({}, { id: "t", at: Date.now() + 1_000 });
  await past.putDocument("t", { ...(await b.task("t")), input: { changed: true } });
  await accept(b.deps, "t");
  const accepted = await b.task("t");
  ahead(b, 10_000);
  await dispatchDue(b.deps, AGENT);
  await b.drain();
  ahead(b, 3 * 3_600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  await past.putDocument("t", accepted);
  ahead(b, 4 * 3_600_000);
  await dispatchDue(b.deps, AGENT);
  expect((await b.task("t")).stamp).toBe(accepted.stamp);
  expect(namesOf(await reconciled(b.deps, { repair: true }))).toEqual(["rolled_back t"]);
  await b.drain();
  expect(ran).toEqual(["t"]);
});

test("a document that was put back stores its next page of settlements over the one it had stored", async () => {
  await using b = await bench(nats, "nats-kv", waiter);
  const { store } = b.deps;
  await b.submit({}, { id: "t" });
  const settleUpTo = async (count: number, seq: number) => {
    const stored = (await store.get("t")) as Stored;
    const more = Array.from(
      { length: count - stored.task.settled.length },
      (_, i): Settlement => ({ queue: "Q", seq: seq + i, dispatch: 1, outcome: "duplicate", at: 0 }),
    );
    const change = (task: Task): Task => ({ ...task, settled: [...task.settled, ...more] });
    await update(b.deps, stored, change, () => {});
    const text = (await store.getPart("t", pageName(0))) ?? "";
    const isItsOwn = (await b.task("t")).settledHash === pageHash(undefined, text);
    return { isItsOwn, last: (JSON.parse(text || "[]") as Settlement[]).at(-1)?.seq };
  };
  await settleUpTo(10, 1);
  const backup = await b.task("t");
  expect(await settleUpTo(65, 11)).toEqual({ isItsOwn: true, last: 32 });
  await store.replace(backup, ((await store.get("t")) as Stored).revision);
  expect(await settleUpTo(65, 1_011)).toEqual({ isItsOwn: true, last: 1_032 });
});
