import type { TaskFilter } from "../ports/store.ts";
import type { SweptState } from "../task/sweep.ts";
import { PARTS, REMOVED, readCursor, SHARDS, TASKS } from "./firestore-codec.ts";

export type Value = Record<string, unknown>;

const equals = (field: string, value: string) => ({
  fieldFilter: { field: { fieldPath: field }, op: "EQUAL", value: encodeValue(value) },
});

const oneOf = (field: string, values: readonly (string | number)[]) => ({
  fieldFilter: {
    field: { fieldPath: field },
    op: "IN",
    value: { arrayValue: { values: values.map((value) => encodeValue(value)) } },
  },
});

const ANY_SHARD = oneOf("shard", SHARDS);

export function listQuery(
  namespace: string,
  root: string,
  { agent, owner, state, states }: TaskFilter,
  limit: number,
  cursor: string | undefined,
) {
  const filters = [
    ANY_SHARD,
    ...(agent === undefined ? [] : [equals("agent", agent)]),
    ...(owner === undefined ? [] : [equals("owner", owner)]),
    ...(state === undefined ? [] : [equals("state", state)]),
    ...(states === undefined ? [] : [oneOf("state", states)]),
  ];
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const name = after && { referenceValue: `${root}/${TASKS(namespace)}/${after.id}` };
  return {
    structuredQuery: {
      from: [{ collectionId: TASKS(namespace) }],
      where: { compositeFilter: { op: "AND", filters } },
      orderBy: ["updatedAt", "__name__"].map((fieldPath) => ({
        field: { fieldPath },
        direction: "DESCENDING",
      })),
      ...(after && { startAt: { values: [encodeValue(new Date(after.at)), name], before: false } }),
      limit,
    },
  };
}

export function dueQuery(
  namespace: string,
  agent: string,
  state: SweptState,
  { after, until }: { after: number; until: number },
  limit: number,
) {
  const filter = (field: string, op: string, value: unknown) => ({
    fieldFilter: { field: { fieldPath: field }, op, value: encodeValue(value) },
  });
  return {
    structuredQuery: {
      from: [{ collectionId: TASKS(namespace) }],
      where: {
        compositeFilter: {
          op: "AND",
          filters: [
            filter("agent", "EQUAL", agent),
            filter("state", "EQUAL", state),
            ANY_SHARD,
            filter("sweepAt", "GREATER_THAN", new Date(after)),
            filter("sweepAt", "LESS_THAN_OR_EQUAL", new Date(until)),
          ],
        },
      },
      orderBy: [{ field: { fieldPath: "sweepAt" }, direction: "ASCENDING" }],
      limit,
    },
  };
}

/** Names and times, no contents. */
const NAMES_ONLY = { fields: [{ fieldPath: "__name__" }] };

export function expiredQuery(namespace: string, now: number, limit: number) {
  const until = {
    field: { fieldPath: "expiresAt" },
    op: "LESS_THAN_OR_EQUAL",
    value: encodeValue(new Date(now)),
  };
  return {
    structuredQuery: {
      select: NAMES_ONLY,
      from: [{ collectionId: TASKS(namespace) }],
      where: { compositeFilter: { op: "AND", filters: [ANY_SHARD, { fieldFilter: until }] } },
      orderBy: [{ field: { fieldPath: "expiresAt" }, direction: "ASCENDING" }],
      limit,
    },
  };
}

export function removedQuery(namespace: string, limit: number) {
  return {
    structuredQuery: { select: NAMES_ONLY, from: [{ collectionId: REMOVED(namespace) }], limit },
  };
}

export function partsQuery(namespace: string, taskIds: readonly string[], limit: number, after?: string) {
  return {
    structuredQuery: {
      select: NAMES_ONLY,
      from: [{ collectionId: PARTS(namespace) }],
      where: oneOf("taskId", taskIds),
      orderBy: [{ field: { fieldPath: "__name__" }, direction: "ASCENDING" }],
      ...(after !== undefined && { startAt: { values: [{ referenceValue: after }], before: false } }),
      limit,
    },
  };
}

export function encodeValue(value: unknown): Value {
  if (value === null) return { nullValue: null };
  if (value instanceof Date) return { timestampValue: value.toISOString() };
  if (typeof value === "number") return { integerValue: String(value) };
  return { stringValue: String(value) };
}
