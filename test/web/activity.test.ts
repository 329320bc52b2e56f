import { expect, test } from "vitest";
import { submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { activityOf } from "../../shared/web/lists/activity.ts";

const now = Date.parse("2026-11-18T12:07:00Z");
const minute = 60_000;

/** Submitted so long before its end, and ended so many minutes ago. */
function ended(minutesAgo: number, took: number, more: object = {}): Task {
  const at = now - minutesAgo * minute;
  const born = submitted(
    { id: "t", agent: "a", lane: 0, input: {}, inputHash: "h", at: at - took, stamp: "s", by: "c" },
    "Q",
  );
  const last = { at, state: "completed", event: "complete", fence: 1, by: "r", stamp: "e" };
  return { ...born, state: "completed", history: [...born.history, last], updatedAt: at, ...more } as never;
}
const failed = (minutesAgo: number, code: string): Task =>
  ({
    ...ended(minutesAgo, 1),
    state: "failed",
    error: { code, message: "", phase: "handler" },
    history: [{ at: now - minutesAgo * minute, state: "failed", event: "fail" }],
  }) as never;

test("tasks are counted in the part of the time in which they ended", () => {
  const tasks = [ended(3, 2_000), ended(4, 4_000), ended(22, 1_000, { spent: { usd: 0.5 } }), ended(90, 9)];
  const { parts, ended: all, usd, p50, p95 } = activityOf(tasks, "1h", { now, seenFrom: 0 });
  expect([all, usd, p50, p95]).toEqual([3, 0.5, 2_000, 4_000]);
  expect(parts.map(({ name }) => name).slice(-3)).toEqual(["11:55", "12:00", "12:05"]);
  // 12:03 and 12:04; 11:45.
  expect(parts.at(-2)?.figures).toEqual({ perMinute: 2 / 5, failed: 0, usd: 0, p95: 4_000 });
  expect(parts.find(({ name }) => name === "11:45")?.figures).toMatchObject({ perMinute: 1 / 5, usd: 0.5 });
  // Nothing ended then: there is no time of it, which is not a time of nothing.
  expect(parts.find(({ name }) => name === "11:35")?.figures).toEqual({ perMinute: 0, failed: 0, usd: 0 });
});

test("what came to a task after its end does not end it again", () => {
  const old = ended(90, 1);
  const touched = {
    ...old,
    updatedAt: now,
    history: [...old.history, { ...old.history.at(-1), at: now, event: "publishDuplicate" }],
  } as Task;
  expect(activityOf([touched], "1h", { now, seenFrom: 0 }).ended).toBe(0);
});

test("reasons are counted, the most frequent first; a time that was not looked at has no figures", () => {
  const tasks = [failed(1, "fatal"), failed(2, "timeout"), failed(3, "timeout")];
  const {
    reasons,
    failed: count,
    parts,
    ...rest
  } = activityOf(tasks, "24h", { now, seenFrom: now - 3 * 3_600_000 });
  expect(reasons).toEqual([
    ["timeout", 2],
    ["fatal", 1],
  ]);
  expect(count).toBe(3);
  expect(rest).not.toHaveProperty("p50");
  expect(parts.filter(({ figures }) => Object.keys(figures).length > 0)).toHaveLength(3);
  expect(activityOf([], "7d", { now, seenFrom: 0 }).parts.map(({ name }) => name)).toEqual([
    "11-12",
    "11-13",
    "11-14",
    "11-15",
    "11-16",
    "11-17",
    "11-18",
  ]);
});
