import { readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import {
  headFields,
  markFields,
  partFields,
  recordFields,
  textFields,
  toFields,
  WRITTEN_AT,
} from "../shared/adapters/firestore/codec.ts";
import { firestoreRest } from "../shared/adapters/firestore/rest.ts";
import { emptyHead } from "../shared/journal/entries.ts";
import type { TaskFilter } from "../shared/ports/store.ts";
import { submitted } from "../shared/task/create.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

interface Index {
  readonly collectionGroup: string;
  readonly queryScope: string;
  readonly fields: readonly { readonly fieldPath: string; readonly order: string }[];
}
interface Override {
  readonly collectionGroup: string;
  readonly fieldPath: string;
  readonly indexes: readonly unknown[];
  readonly ttl?: boolean;
}
const { indexes, fieldOverrides } = JSON.parse(
  readFileSync(new URL("../infra/firestore.indexes.json", import.meta.url), "utf8"),
) as { indexes: readonly Index[]; fieldOverrides: readonly Override[] };

interface Query {
  readonly where: {
    readonly compositeFilter: {
      readonly filters: readonly {
        readonly fieldFilter: {
          readonly field: { readonly fieldPath: string };
          readonly op: string;
          readonly value: { readonly arrayValue?: { readonly values: readonly unknown[] } };
        };
      }[];
    };
  };
  readonly orderBy: readonly { readonly field: { readonly fieldPath: string }; readonly direction: string }[];
}

/** The queries that the store sends, one for every kind of question. The emulator would answer without any index. */
async function queries(): Promise<Query[]> {
  const sent: Query[] = [];
  vi.stubGlobal("fetch", async (_: string, { body }: { body: string }) => {
    sent.push((JSON.parse(body) as { structuredQuery: Query }).structuredQuery);
    return new Response(JSON.stringify([{ readTime: "2026-11-16T02:24:00Z" }]));
  });
  const store = firestoreRest({
    projectId: "p",
    namespace: "pawl",
    requestTimeout: 1_000,
    token: async () => "t",
  });
  const given: TaskFilter = { agent: "echo", owner: "ann", state: "failed" };
  const filters = Object.entries(given).reduce<TaskFilter[]>(
    (some, [field, value]) => some.flatMap((one) => [one, { ...one, [field]: value }]),
    [{}],
  );
  expect(filters).toHaveLength(8);
  for (const filter of filters) {
    await store.list(filter, 10);
    await store.list(filter, 10, "1.a");
  }
  await store.list({ agents: ["echo", "digest"], owner: "ann" }, 10);
  // The most that is ever asked for at once: all that live.
  await store.list({ states: ["scheduled", "dispatched", "running", "waiting", "in_doubt"] }, 10);
  await store.due("echo", "scheduled", { after: 0, until: 1 }, 10);
  await store.expire(1, 10);
  await store.changes("since:1.000000000", 10);
  await store.changes("since:1.000000000:1.000000000:1.000000000:a", 10);
  await store.changes("name:1.000000000:a", 10);
  // What has no order and one condition at most needs no index but those that every field has; nor has the order of names.
  return sent.filter((query) => query?.orderBy && query.where);
}

/** Fields compared for equality in any order, then those that order the answer; the name comes last by itself. */
function neededBy({ where, orderBy }: Query): string {
  const equal = where.compositeFilter.filters
    .filter(({ fieldFilter }) => fieldFilter.op === "EQUAL" || fieldFilter.op === "IN")
    .map(({ fieldFilter }) => `${fieldFilter.field.fieldPath} ASCENDING`);
  const ordered = orderBy
    .map(({ field, direction }) => `${field.fieldPath} ${direction}`)
    .filter((one) => !one.startsWith("__name__"));
  return [...equal.sort(), ...ordered].join(", ");
}

function given({ fields }: Index): string {
  const names = fields.map(({ fieldPath, order }) => `${fieldPath} ${order}`);
  return [...names.slice(0, -1).sort(), ...names.slice(-1)].join(", ");
}

test("every query has its index, and every index its query", async () => {
  const needed = new Set((await queries()).map(neededBy));
  expect(indexes.map(given).sort()).toEqual([...needed].sort());
  expect(needed.size).toBe(11);
});

test("in each index the shard stands right before the time: one range would take 500 writes a second", () => {
  for (const { collectionGroup, queryScope, fields } of indexes) {
    expect([collectionGroup, queryScope]).toEqual(["pawl-tasks", "COLLECTION"]);
    expect(fields.at(-2)).toEqual({ fieldPath: "shard", order: "ASCENDING" });
    expect(["updatedAt", "sweepAt", "expiresAt", "writtenAt"]).toContain(fields.at(-1)?.fieldPath);
  }
});

test("no query asks for more than 30 combinations of shards and states, which is Firestore's limit", async () => {
  for (const { where } of await queries()) {
    const values = where.compositeFilter.filters.map(
      ({ fieldFilter }) => fieldFilter.value.arrayValue?.values,
    );
    expect(values.reduce((product, list) => product * (list?.length ?? 1), 1)).toBeLessThanOrEqual(30);
  }
});

test("what no query looks for is in no index of its own: times, stamps, texts", () => {
  const input = { id: "a", agent: "echo", lane: 0, input: {}, inputHash: "", at: 0, stamp: "", by: "" };
  const task = submitted(input, "q");
  const written: Record<string, object> = {
    "pawl-tasks": { ...toFields(task), [WRITTEN_AT]: null },
    "pawl-journals": headFields(emptyHead(task, 1, "")),
    "pawl-parts": partFields("a", ""),
    "pawl-records": recordFields(""),
    "pawl-texts": textFields(""),
    "pawl-removed": markFields(),
  };
  const exempt = fieldOverrides.map(({ collectionGroup, fieldPath, indexes }) => {
    expect(written[collectionGroup], collectionGroup).toHaveProperty(fieldPath);
    expect(indexes).toEqual([]);
    return `${collectionGroup}.${fieldPath}`;
  });
  const indexed = Object.entries(written)
    .flatMap(([group, fields]) => Object.keys(fields).map((field) => `${group}.${field}`))
    .filter((one) => !exempt.includes(one));
  expect(indexed.sort()).toEqual([
    "pawl-parts.taskId",
    ...["agent", "owner", "shard", "state"].map((field) => `pawl-tasks.${field}`),
  ]);
  // A document that such a policy removes leaves its journal and its parts behind.
  expect(fieldOverrides.filter(({ ttl }) => ttl)).toEqual([]);
});
