import fc from "fast-check";
import { expect, test } from "vitest";
import { isTaskId, laneOf } from "../../shared/task/names.ts";
import {
  canonicalJson,
  hashInput,
  type Json,
  type JsonObject,
  parseJson,
  plainJson,
} from "../../shared/values/json.ts";

const json = fc.jsonValue({ maxDepth: 6 }) as fc.Arbitrary<Json>;

test("what JSON.parse takes is taken as it is, within the depth", () => {
  fc.assert(
    fc.property(json, (value) => {
      const text = JSON.stringify(value);
      fc.pre(!text.includes("__proto__") && !/\d{16}/.test(text));
      expect(parseJson(text, "x")).toEqual(JSON.parse(text));
    }),
  );
});

test("the same value in another order of keys has the same hash, another value another one", async () => {
  const shuffled = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, child]) => [key, shuffled(child)]),
    );
  };
  await fc.assert(
    fc.asyncProperty(json, json, async (a, b) => {
      expect(hashInput({ v: a })).toBe(hashInput(shuffled({ v: a }) as JsonObject));
      const same = canonicalJson(a) === canonicalJson(b);
      expect(hashInput({ v: a }) === hashInput({ v: b })).toBe(same);
    }),
  );
});

test("brackets inside strings are no depth; 64 levels are fine, 65 are not", () => {
  expect(parseJson(JSON.stringify({ a: `\\"${"[".repeat(500)}` }), "x")).toEqual({
    a: `\\"${"[".repeat(500)}`,
  });
  expect(() => parseJson("[".repeat(64) + "]".repeat(64), "x")).not.toThrow();
  expect(() => parseJson("[".repeat(65) + "]".repeat(65), "x")).toThrow(
    "x is nested 65 levels deep; 64 is the limit",
  );
  expect(() => plainJson({ a: JSON.parse('{"__proto__":1}') }, "x", "result_invalid")).toThrow("__proto__");
});

test("ids are what a subject token and a document id can both be", () => {
  for (const id of ["a", "A-b_9", "_", "--", "x".repeat(128), "__a"]) expect(isTaskId(id), id).toBe(true);
  for (const id of ["", ".", "a.b", "a b", "a/b", "*", ">", "é", "x".repeat(129), "a\n", "____", "__a__"]) {
    expect(isTaskId(id), id).toBe(false);
  }
});

test("lanes are stable, in range, and evenly used", () => {
  const counts = Array(8).fill(0);
  for (let i = 0; i < 8_000; i++) counts[laneOf(`task-${i}`, 8)]++;
  expect(Math.min(...counts)).toBeGreaterThan(800);
  expect(laneOf("one-key", 8)).toBe(laneOf("one-key", 8));
  expect(laneOf("anything", 1)).toBe(0);
});

test("integers that would come out as others are refused; other numbers are taken", () => {
  expect(() => parseJson('{"id": 12345678901234567890}', "The input")).toThrow("id is 12345678901234567890");
  expect(parseJson('{"a": 9007199254740991, "b": 1e300, "c": 0.1}', "x")).toEqual({
    a: 9007199254740991,
    b: 1e300,
    c: 0.1,
  });
});

test("a value in memory is plain JSON, or the error names where it is not", () => {
  expect(plainJson({ a: [1, "x", null, { b: true }], gone: undefined }, "r", "result_invalid")).toEqual({
    a: [1, "x", null, { b: true }],
  });
  for (const [value, says] of [
    [{ f: () => 1 }, "r.f is a function"],
    [new Map(), "r is a Map"],
    [{ d: [new Date()] }, "r.d.0 is a Date"],
    [{ n: Number.NaN }, "r.n is NaN"],
    [[undefined], "r.0 is a undefined"],
    [1n, "r is a bigint"],
  ] as const) {
    expect(() => plainJson(value, "r", "result_invalid")).toThrow(says);
  }
});
