import { expect, test } from "vitest";
import type { Bucket } from "../../../shared/adapters/kv/bucket.ts";
import { dueIndex } from "../../../shared/adapters/kv/due.ts";
import type { Values } from "../../../shared/adapters/kv/lease.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import type { WriteResult } from "../../../shared/ports/store.ts";
import { create } from "../../../shared/retry/guarded-write.ts";
import { scheduled } from "../../../shared/task/create.ts";

const now = 1_000_000;
const envelope = { id: "t", agent: "a", lane: 0, input: {}, inputHash: "h", at: now, stamp: "s", by: "test" };
const task = scheduled(envelope, now + 1_000);
const KEY = "due.a.scheduled.t";

/** Keys in memory; `refuses`: puts of these keys fail so often. */
function memory(failures = 0, code: "store_unavailable" | "store_refused" = "store_unavailable") {
  const there = new Map<string, { text: string; revision: string }>();
  let left = failures;
  let writes = 0;
  const values: Values = {
    get: async (_, key) => there.get(key),
    put: async (what, key, text, seen) => {
      if (left-- > 0) throw new PawlError(code, what);
      if (there.get(key)?.revision !== seen) return { kind: "refused" };
      const revision = String(++writes);
      there.set(key, { text, revision });
      return { kind: "written", revision };
    },
  };
  return { there, index: dueIndex({} as Bucket, values) };
}

const written: WriteResult = { kind: "written", revision: "1" };
const unanswered = async (): Promise<WriteResult> => {
  throw new PawlError("store_unavailable", "no answer");
};

test("a new task's entry is there, whatever became of its document's write", async () => {
  for (const write of [async () => written, async () => ({ kind: "refused" }) as const, unanswered]) {
    const { there, index } = memory();
    // Of an earlier life of the id, and for much later.
    there.set(KEY, { text: String(now + 9_000_000), revision: "0" });
    await index.indexed(task, write).catch(() => {});
    expect(there.get(KEY)?.text).toBe(String(now + 1_000));
  }
});

test("nobody is told that a document is written before its entry is", async () => {
  // Forbidden for good, as where a user may write documents only: nobody knows that nothing was done.
  for (const code of ["store_unavailable", "store_refused"] as const) {
    const { index } = memory(Number.POSITIVE_INFINITY, code);
    await expect(index.indexed(task, async () => written)).rejects.toMatchObject({
      code: "store_unavailable",
    });
  }
  const { there, index } = memory(1);
  expect(await index.indexed(task, async () => written)).toEqual(written);
  expect(there.has(KEY)).toBe(true);
});

test("a create that was not answered is asked for again, and found to be its own", async () => {
  const answers: (() => Promise<WriteResult>)[] = [unanswered, async () => ({ kind: "refused" })];
  let created = 0;
  const store = {
    create: () => (answers[created++] as () => Promise<WriteResult>)(),
    get: async () => ({ task, revision: "1" }),
  };
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} };
  const deps = { store, clock, log: () => {}, bus: { announce: () => {} } } as unknown as Deps;
  expect(await create(deps, task, () => {})).toMatchObject({ kind: "written", answered: false });
  expect(created).toBe(2);
});
