import fc from "fast-check";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { alteredDocuments, unreadableDocuments } from "../../support/faults/planted-documents.ts";
import { journals, rolledBack, vanished } from "../../support/faults/planted-tasks.ts";
import { type Cast, expectFound, type Planted, stage } from "../../support/faults/planting.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const all: readonly Planted[] = [
  ...unreadableDocuments,
  ...alteredDocuments,
  ...journals,
  ...vanished,
  ...rolledBack,
];
const onKv = all.filter(({ store = "nats-kv" }) => store === "nats-kv");

describe("in NATS KV", () => {
  test.each(onKv)("$name is found and named, and nothing else is", async (fault) => {
    await using s = await stage(nats, "nats-kv");
    await expectFound(s, [["x", fault]]);
  });
});

/** So many are planted beside each other in Firestore, where a stage costs more. */
const TOGETHER = 12;
const inFirestore = all.filter(({ store }) => store !== "nats-kv");
const shared = inFirestore.filter(({ isAlone }) => !isAlone);
const groups = [
  ...Array.from({ length: Math.ceil(shared.length / TOGETHER) }, (_, i) =>
    shared.slice(i * TOGETHER, (i + 1) * TOGETHER),
  ),
  ...inFirestore.filter(({ isAlone }) => isAlone).map((fault) => [fault]),
].map((faults) => ({ faults, names: faults.map(({ name }) => name).join("; ") }));

describe.skipIf(!hasEmulator)("in Firestore", () => {
  test.each(groups)(
    "each is found and named beside the others, and nothing else is: $names",
    async ({ faults }) => {
      await using s = await stage(nats, "firestore-rest");
      await expectFound(
        s,
        faults.map((fault, i): Cast[number] => [`f${i}`, fault]),
      );
    },
  );
});

test("any two of them are found beside each other, and nothing else is", async () => {
  const two = fc.uniqueArray(fc.constantFrom(...onKv.filter(({ isAlone }) => !isAlone)), {
    minLength: 2,
    maxLength: 2,
  });
  const pairs = fc.asyncProperty(two, async ([a, b]) => {
    await using s = await stage(nats, "nats-kv");
    await expectFound(s, [
      ["a", a as Planted],
      ["b", b as Planted],
    ]);
  });
  await fc.assert(pairs, { numRuns: 15 });
}, 120_000);
