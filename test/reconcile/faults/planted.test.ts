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
/** So many are planted beside each other: a stage, and two reconciliations of it, cost more than what is planted. */
const TOGETHER = 12;
const inGroups = (faults: readonly Planted[]) => {
  const shared = faults.filter(({ isAlone }) => !isAlone);
  const groups = Array.from({ length: Math.ceil(shared.length / TOGETHER) }, (_, i) =>
    shared.slice(i * TOGETHER, (i + 1) * TOGETHER),
  );
  const alone = faults.filter(({ isAlone }) => isAlone).map((fault) => [fault]);
  return [...groups, ...alone].map((group) => ({ group, names: group.map(({ name }) => name).join("; ") }));
};
const onKv = all.filter(({ store = "nats-kv" }) => store === "nats-kv");

describe.each([
  { kind: "nats-kv" as const, here: true, faults: onKv },
  {
    kind: "firestore-rest" as const,
    here: hasEmulator,
    faults: all.filter(({ store }) => store !== "nats-kv"),
  },
])("$kind", ({ kind, here, faults }) => {
  test.skipIf(!here).each(inGroups(faults))(
    "each is found and named beside the others, and nothing else is: $names",
    async ({ group }) => {
      await using s = await stage(nats, kind);
      await expectFound(
        s,
        group.map((fault, i): Cast[number] => [`f${i}`, fault]),
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
