import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import type { Settlement, Task } from "../../shared/task/document.ts";
import { streamName } from "../../shared/task/names.ts";
import { agentOf, type Bench, bench } from "../support/bench.ts";
import { ahead, namesOf, reconciled } from "../support/reconciling.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const echo = agentOf(() => "done");
const DAY = 86_400_000;

/** Writes through the seal what no journey would. */
async function rewrite(b: Bench, id: string, change: (task: Task) => object): Promise<void> {
  const found = await b.deps.store.get(id);
  if (!found) throw new Error(`no ${id}`);
  const task = { ...found.task, ...change(found.task), stamp: crypto.randomUUID() } as Task;
  expect((await b.deps.store.replace(task, found.revision)).kind).toBe("written");
}

test.skipIf(!hasEmulator)(
  "a finished document that was changed past Pawl after its report is found by a look at all of them",
  async () => {
    await using b = await bench(nats, "firestore", echo);
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(namesOf(await reconciled(b.deps))).toEqual([]);
    const { Firestore } = await import("@google-cloud/firestore");
    const { project = "", emulatorHost = "", settings } = b.world.config;
    const db = new Firestore({ projectId: project, host: emulatorHost, ssl: false });
    const doc = db.collection(`${settings.namespace}-tasks`).doc("t");
    const task = JSON.parse((await doc.get()).get("json") as string) as Task;
    await doc.update({ json: JSON.stringify({ ...task, result: "another" }) });
    await db.terminate();
    const whole = { repair: false, writers, isWhole: true };
    const done = await reconcile(b.deps, new AbortController().signal, whole);
    expect(done && namesOf(done)).toEqual(["altered t"]);
  },
);

test("a retention that other writers had too short is in the table of settings", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({}, { id: "t" });
  await b.drain();
  await rewrite(b, "t", () => ({ expiresAt: Date.now() + 3 * DAY }));
  const { report } = await reconciled(b.deps);
  expect(report.settings.find(({ what }) => what === "retention")).toMatchObject({ ok: false });
});

test("numbers that a stream gave out twice show that it was restored from a backup", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (let i = 1; i <= 4; i++) await b.submit({}, { id: `a${i}` });
  await b.drain();
  for (let i = 1; i <= 4; i++) await b.submit({}, { id: `b${i}` });
  await b.drain();
  // As after a restore under the same `created`: tasks that came later have the numbers of those before.
  for (let i = 1; i <= 3; i++)
    await rewrite(b, `b${i}`, ({ settled }) => ({
      settled: [...settled, { ...(settled[0] as Settlement), seq: i, outcome: "rescheduled" }],
    }));
  expect(namesOf(await reconciled(b.deps))).toEqual([`stream_rewound ${streamName(b.queue)}`]);
});

test("so do numbers that a report had explained, and that another task settles a day later", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (let i = 1; i <= 4; i++) await b.submit({}, { id: `a${i}` });
  await b.drain();
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  await b.submit({}, { id: "b" });
  await b.drain();
  await rewrite(b, "b", ({ settled }) => ({
    settled: [
      ...settled,
      ...[1, 2, 3].map((seq) => ({ ...(settled[0] as Settlement), seq, at: Date.now() + DAY })),
    ],
  }));
  ahead(b, 2 * DAY);
  expect(namesOf(await reconciled(b.deps))).toContain(`stream_rewound ${streamName(b.queue)}`);
});
