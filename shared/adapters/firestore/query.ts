import type { TaskFilter } from "../../ports/store.ts";
import type { SweptState } from "../../task/due.ts";
import { PARTS, REMOVED, SHARDS, TASKS, TEXTS, WRITTEN_AT } from "./codec.ts";
import { LATEST, readCursor } from "./pages.ts";

export type Value = Record<string, unknown>;

const filter = (field: string, op: string, value: unknown) => ({
  fieldFilter: { field: { fieldPath: field }, op, value: encodeValue(value) },
});

const equals = (field: string, value: string) => filter(field, "EQUAL", value);

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
    // No field that is something else than a time: it would have no place among the others.
    filter("updatedAt", "LESS_THAN_OR_EQUAL", new Date(LATEST)),
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

/** How many a list would have, up to so many. Firestore charges a read for a thousand of them. */
export function countQuery(namespace: string, root: string, filter: TaskFilter, most: number) {
  const { limit: _, ...structuredQuery } = listQuery(
    namespace,
    root,
    filter,
    most,
    undefined,
  ).structuredQuery;
  const count = { upTo: String(most) };
  return { structuredAggregationQuery: { structuredQuery, aggregations: [{ alias: "all", count }] } };
}

export function dueQuery(
  namespace: string,
  agent: string,
  state: SweptState,
  { after, until }: { after: number; until: number },
  limit: number,
  behind?: Behind,
) {
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
      ...inOrder("sweepAt", behind),
      limit,
    },
  };
}

/** A document as a place in the order of a time and its name: both as REST has them. */
export interface Behind {
  readonly time: string;
  readonly name: string;
}

function inOrder(field: string, behind: Behind | undefined) {
  const values = behind && [{ timestampValue: behind.time }, { referenceValue: behind.name }];
  return {
    orderBy: [field, "__name__"].map((fieldPath) => ({ field: { fieldPath }, direction: "ASCENDING" })),
    ...(values && { startAt: { values, before: false } }),
  };
}

/** All that the server wrote the time into after `from`, which is as REST has it. */
export function changesQuery(namespace: string, limit: number, from: string, behind?: Behind) {
  const since = {
    fieldFilter: {
      field: { fieldPath: WRITTEN_AT },
      op: "GREATER_THAN",
      value: { timestampValue: from },
    },
  };
  return {
    structuredQuery: {
      from: [{ collectionId: TASKS(namespace) }],
      where: { compositeFilter: { op: "AND", filters: [ANY_SHARD, since] } },
      ...inOrder(WRITTEN_AT, behind),
      limit,
    },
  };
}

/** All that there are. */
export function namesQuery(namespace: string, limit: number, after?: string) {
  const startAt = { values: [{ referenceValue: after }], before: false };
  return {
    structuredQuery: {
      from: [{ collectionId: TASKS(namespace) }],
      orderBy: [{ field: { fieldPath: "__name__" }, direction: "ASCENDING" }],
      ...(after !== undefined && { startAt }),
      limit,
    },
  };
}

/** Names and times, no contents. */
const NAMES_ONLY = { fields: [{ fieldPath: "__name__" }] };

export function expiredQuery(namespace: string, now: number, limit: number) {
  const until = filter("expiresAt", "LESS_THAN_OR_EQUAL", new Date(now));
  return {
    structuredQuery: {
      select: NAMES_ONLY,
      from: [{ collectionId: TASKS(namespace) }],
      where: { compositeFilter: { op: "AND", filters: [ANY_SHARD, until] } },
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

export function textsQuery(namespace: string, limit: number, after?: string) {
  return {
    structuredQuery: {
      select: NAMES_ONLY,
      from: [{ collectionId: TEXTS(namespace) }],
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

/** A field as it was read: a text, a number, null, a time; anything else as REST has it. */
export function decodeValue(value: Value): unknown {
  if ("nullValue" in value) return null;
  if ("integerValue" in value) return Number(value.integerValue);
  if ("timestampValue" in value) return { time: fromRestTime(value.timestampValue as string) };
  return value.stringValue ?? value.doubleValue ?? value;
}

/** "2026-11-16T02:24:00.123456Z" ↔ "1794795840.123456000", the form that the gRPC client uses. */
export function fromRestTime(time: string): string {
  const [whole, fraction = ""] = time.replace("Z", "").split(".");
  return `${Date.parse(`${whole}Z`) / 1000}.${fraction.padEnd(9, "0")}`;
}

export function toRestTime(revision: string): string {
  const [seconds, nanos] = revision.split(".");
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${nanos}Z`;
}
