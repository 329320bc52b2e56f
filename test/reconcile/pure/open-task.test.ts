import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type OpenTask,
  OpenTaskIndex,
  openTaskLine,
  pieces,
  readOpenTask,
} from "../../../shared/reconcile/books/open-task.ts";
import { states } from "../../../shared/task/table.ts";

const carried: fc.Arbitrary<OpenTask> = fc.record({
  id: fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/),
  agent: fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/),
  state: fc.constantFrom(...states),
  stamp: fc.nat(2 ** 31),
  expiresAt: fc.nat(2 ** 42),
  numbers: fc.array(fc.nat({ max: 2 ** 50 }), { maxLength: 20 }),
});

/** Without what a line leaves out. */
const trimmed = ({ numbers, ...rest }: OpenTask) => ({
  ...rest,
  numbers: numbers.slice(0, numbers.findLastIndex((one) => one !== 0) + 1),
});

test("a line says all of it, and the index finds it by its id alone", () => {
  fc.assert(
    fc.property(fc.uniqueArray(carried, { selector: ({ id }) => id, maxLength: 60 }), (all) => {
      const index = new OpenTaskIndex("seed", all.length);
      for (const one of all) index.add(openTaskLine(one));
      expect(index.count).toBe(all.length);
      for (const one of all) {
        expect(readOpenTask(openTaskLine(one))).toEqual(trimmed(one));
        expect(index.get(one.id)).toEqual(trimmed(one));
        expect(index.get(`${one.id}x`.slice(-128))?.id).not.toBe(one.id);
      }
    }),
  );
});

test("what is no line is none", () => {
  for (const line of ["", "a", "a b", "a b z", "a b 0 ? 0", " b 0 0 0"])
    expect(readOpenTask(line)).toBeUndefined();
});

test("100,000 take less than 70 bytes each, are all found, and no other is", () => {
  const before = process.memoryUsage().arrayBuffers;
  const index = new OpenTaskIndex("seed", 100_000);
  const ids = Array.from({ length: 100_000 }, () => crypto.randomUUID());
  for (const id of ids)
    index.add(openTaskLine({ id, agent: "a", state: "waiting", stamp: 7, expiresAt: 0, numbers: [1, 0, 2] }));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(70 * ids.length);
  expect(ids.every((id) => index.get(id)?.id === id)).toBe(true);
  expect(Array.from({ length: 100_000 }, () => crypto.randomUUID()).some((id) => index.get(id))).toBe(false);
});

test("pieces are about equal, and hashes differ", () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => `task-${i}`);
  const placed = ids.map(pieces("seed", 8));
  const counts = placed.reduce(
    (sum, { piece }) => sum.with(piece, (sum[piece] ?? 0) + 1),
    [0, 0, 0, 0, 0, 0, 0, 0],
  );
  expect(Math.min(...counts)).toBeGreaterThan(1_000);
  expect(new Set(placed.map(({ hash }) => hash)).size).toBe(ids.length);
});
