import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { accept } from "../../shared/dispatch/accept.ts";
import { redrive } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Head } from "../../shared/journal/entries.ts";
import { sealerOf } from "../../shared/seal/sealer.ts";
import type { Task } from "../../shared/task/document.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { ahead, namesOf, reconciled } from "../support/reconciling.ts";
import { testNats, wired } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const KEY = "0123456789abcdef";
const echo = agentOf(({ input }) => input);

/** What somebody does who can write the bucket, and has no key. */
async function edit<T extends Task | Head>(
  b: Bench,
  key: string,
  change: (there: T) => object,
): Promise<void> {
  const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
  const there = (await bucket.get(key))?.json<T>();
  if (!there) throw new Error(`no ${key}`);
  await bucket.put(key, JSON.stringify({ ...there, ...change(there) }));
}

test("a seal fits its text alone, with and without a key, and is what earlier versions made", () => {
  for (const keys of [["none"], [KEY, "none"], [`${KEY}-newer`, KEY]]) {
    const sealer = sealerOf(keys);
    for (const text of ["", "a", "é👩".repeat(5_000)]) {
      const seal = sealer.seal(text);
      expect(sealer.isGenuine(seal, text)).toBe(true);
      const changed = seal.replace(/.$/, (c) => (c === "A" ? "B" : "A"));
      for (const other of [seal.slice(1), `${seal}x`, "", changed])
        expect(sealer.isGenuine(other, text)).toBe(false);
      expect(sealer.isGenuine(seal, `${text} `)).toBe(false);
    }
  }
  expect(sealerOf().seal("text")).toBe("0.mC2ePrmW9VnmM_TRlN7zdh");
  expect(sealerOf(["a-key-of-an-earlier-version"]).seal("text")).toBe("MQCjST.z1Y45yEO_qtybJfIlNUJ4b");
});

test("a key that was followed by a newer one is accepted for as long as it is named", async () => {
  const older = sealerOf([KEY]).seal("text");
  expect(sealerOf([`${KEY}-newer`, KEY]).isGenuine(older, "text")).toBe(true);
  expect(sealerOf([`${KEY}-newer`]).isGenuine(older, "text")).toBe(false);
  expect(sealerOf([KEY]).isGenuine(sealerOf().seal("text"), "text")).toBe(false);
  expect(sealerOf([KEY]).acceptsUnsealed).toBe(false);
  expect(sealerOf([KEY, "none"]).acceptsUnsealed).toBe(true);
});

test("every write is sealed, and names the seal before it", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ step }) => step("one", () => 1)),
  );
  await b.submit({}, { id: "t" });
  const first = await b.task("t");
  expect(first.seal?.before).toBe("");
  await b.drain();
  const done = await b.task("t");
  // The claim in between named the first, and this one named the claim.
  expect(done.seal?.before).not.toBe("");
  expect(done.seal?.own).not.toBe(first.seal?.own);
  expect((await b.deps.store.getHead("t"))?.head.seal?.own).toBeTruthy();
});

const changes: Record<string, (task: Task) => object> = {
  "its input": () => ({ input: { paid: true } }),
  "its fence": ({ fence }) => ({ fence: fence - 1 }),
  "its cost": () => ({ spent: { inputTokens: -5, outputTokens: 0, turns: 1, usd: 1_000_000 } }),
  "its id": () => ({ id: "other" }),
  "its seal": ({ stamp }) => ({ seal: { own: "0.AAAAAAAAAAAAAAAAAAAAAA", before: "", stamp } }),
};

describe.each(Object.entries(changes))("a document with %s changed by hand", (_, change) => {
  test("is not run: its message is kept apart, the lane goes on, and the document stays as it is", async () => {
    const ran: string[] = [];
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(({ id }) => void ran.push(id)),
    );
    await b.submit({}, { id: "bad" });
    await b.submit({}, { id: "good" });
    await edit(b, "task.bad", change);
    expect(await b.drain()).toEqual({ "dead-letter": 1, completed: 1 });
    expect(ran).toEqual(["good"]);
    await expect(b.deps.store.get("bad")).rejects.toMatchObject({ code: "document_altered" });
    const { tasks } = await b.deps.store.list({ state: "failed" }, 10);
    expect(tasks).toMatchObject([{ error: { code: "document_altered" }, settled: [{ seq: 1 }], input: {} }]);
  });
});

test("a message that says otherwise than its document does not stand for it", async () => {
  const ran: unknown[] = [];
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ input }) => void ran.push(input)),
  );
  await b.submit({ amount: 1 }, { id: "t" });
  const lying = await b.deps.bus.lookup(b.queue, "t");
  const [kept] = await b.deps.bus.survivors(b.queue, 1, 1);
  if (!lying || !kept) throw new Error("no message");
  await b.deps.bus.remove(b.queue, kept.seq);
  const text = new TextDecoder().decode(kept.data).replace('"amount":1', '"amount":9');
  await b.deps.bus.publish(b.queue, {
    taskId: "t",
    data: new TextEncoder().encode(text),
    msgId: "another",
    headers: Object.fromEntries([...kept.headers].filter(([name]) => name.startsWith("Pawl-"))),
  });
  await b.drain();
  expect(ran).toEqual([]);
  expect((await b.task("t")).input).toEqual({ amount: 1 });
});

test("a message that is no task, for a document changed by hand, is kept apart, and the document stays as it is", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({}, { id: "t" });
  await b.drain();
  await edit<Task>(b, "task.t", () => ({ input: { changed: true } }));
  const data = new TextEncoder().encode("nonsense");
  await b.deps.bus.publish(b.queue, { taskId: "t", data, msgId: "m", headers: {} });
  expect(await b.drain()).toEqual({ "dead-letter": 1 });
  await expect(b.deps.store.get("t")).rejects.toMatchObject({ code: "document_altered" });
  const { tasks } = await b.deps.store.list({ state: "failed" }, 10);
  expect(tasks).toMatchObject([{ error: { code: "envelope_invalid" }, settled: [{ seq: 2 }] }]);
});

test("a document without a seal is run without a key, and refused with one", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  const config = { ...b.world.config, sealKeys: [KEY] };
  await using keyed = await wired(config);
  await b.submit({}, { id: "old" });
  await edit(b, "task.old", () => ({ seal: undefined }));
  expect((await b.task("old")).state).toBe("dispatched");
  await expect(keyed.store.get("old")).rejects.toThrow(/has no seal, and PAWL_SEAL_KEY asks for one/);
  await b.drain();
  // Sealed now, but with no key: whoever can write the store could do that.
  await expect(keyed.store.get("old")).rejects.toThrow(/sealed with a key that PAWL_SEAL_KEY does not have/);
  await using both = await wired({ ...config, sealKeys: [KEY, "none"] });
  expect((await both.store.get("old"))?.task.state).toBe("completed");
});

test("what a writer of a version without seals wrote over a sealed document counts as unsealed", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({}, { id: "t" });
  await edit<Task>(b, "task.t", () => ({ stamp: crypto.randomUUID(), updatedAt: Date.now() }));
  expect((await b.task("t")).state).toBe("dispatched");
  await using keyed = await wired({ ...b.world.config, sealKeys: [KEY] });
  await expect(keyed.store.get("t")).rejects.toThrow(/has no seal/);
});

describe("a journal", () => {
  /** A task that has journaled two steps, one of them large, and is a dead letter. */
  const failedOnce = async (seen: string[]): Promise<Bench> => {
    const twoSteps = agentOf(
      async ({ step }) => {
        const one = await step("one", () => "first");
        const big = await step("big", () => "x".repeat(20_000));
        seen.push(`${one} ${big.length}`);
        if (seen.length === 1) throw new Error("again");
        return one;
      },
      { attempts: 1 },
    );
    const b = await bench(nats, "nats-kv", twoSteps);
    await b.submit({}, { id: "t" });
    await b.drain();
    return b;
  };

  test("with a step's value changed by hand is not replayed: the task is a dead letter", async () => {
    const seen: string[] = [];
    await using b = await failedOnce(seen);
    await edit<Head>(b, "journal.t", ({ recent }) => ({
      recent: recent.map((one) =>
        one.kind === "step" && one.key === "one#1" ? { ...one, value: "lie" } : one,
      ),
    }));
    await redrive(b.deps, "t");
    await b.drain();
    expect(seen).toEqual(["first 20000"]);
    expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "journal_altered" } });
    // From scratch it is not read any more.
    await redrive(b.deps, "t", { fromScratch: true });
    await b.drain();
    expect(seen).toEqual(["first 20000", "first 20000"]);
    expect((await b.task("t")).state).toBe("completed");
  });

  test("with a large value changed by hand is not replayed", async () => {
    const seen: string[] = [];
    await using b = await failedOnce(seen);
    const head = (await b.deps.store.getHead("t"))?.head;
    const big = head?.recent.find((one) => one.kind === "step" && one.key === "big#1");
    const [part = ""] = (big as { parts?: string[] }).parts ?? [];
    await b.deps.store.putPart("t", part, JSON.stringify("y".repeat(20_000)));
    await redrive(b.deps, "t");
    await b.drain();
    expect(seen).toEqual(["first 20000"]);
    expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "journal_altered" } });
  });
});

test("what a person accepts is sealed anew, with a word in its history", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({ amount: 1 }, { id: "t" });
  await edit(b, "task.t", () => ({ input: { amount: 2 } }));
  expect(await accept(b.deps, "t")).toEqual({ document: true, journal: false });
  const task = await b.task("t");
  expect(task.input).toEqual({ amount: 2 });
  expect(task.history.at(-1)).toMatchObject({ event: "accept" });
  expect(await accept(b.deps, "t")).toEqual({ document: false, journal: false });
  await expect(accept(b.deps, "none")).rejects.toMatchObject({ code: "task_unknown" });
});

test("a task that was accepted gets another message in place of the one that was kept apart, and runs once", async () => {
  const ran: unknown[] = [];
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ input }) => void ran.push(input)),
  );
  await b.submit({ amount: 1 }, { id: "t" });
  await edit<Task>(b, "task.t", () => ({ input: { amount: 2 } }));
  await b.drain();
  // A report in between knows it neither as open nor as over.
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps, { repair: true }))).toEqual(["altered t"]);
  await accept(b.deps, "t");
  ahead(b, 1_200_000);
  expect(await dispatchDue(b.deps, AGENT)).toBe(1);
  await b.drain();
  expect(ran).toEqual([{ amount: 2 }]);
});

test("a holder whose document is changed under it loses its lease, and writes nothing", async () => {
  let isAborted = false;
  const slow = agentOf(async ({ signal }) => {
    await edit(b, "task.t", () => ({ input: { changed: true } }));
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    isAborted = true;
    throw signal.reason;
  });
  await using b = await bench(nats, "nats-kv", slow, { ackWait: 2_000 });
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(isAborted).toBe(true);
  await expect(b.deps.store.get("t")).rejects.toMatchObject({ code: "document_altered" });
});
