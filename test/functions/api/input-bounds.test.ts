import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { boundsOf, shownSchema } from "../../../infra/input-bounds.ts";
import type { JsonObject } from "../../../shared/values/json.ts";

const asChecked = (schema: z.ZodType) => z.fromJSONSchema(boundsOf(schema) as never);

interface Tree {
  readonly value: string;
  readonly kids?: Tree[] | undefined;
}
const tree: z.ZodType<Tree> = z.object({
  value: z.string(),
  get kids() {
    return z.array(tree).optional();
  },
});

/** One of every kind that a field may be of, each with what it takes that a careless JSON Schema would refuse. */
const kinds: Readonly<
  Record<string, readonly [z.ZodType, takes: readonly unknown[], never: readonly unknown[]]>
> = {
  regex: [z.string().regex(/^a+$/i), ["AA"], [7, undefined]],
  url: [z.url(), ["https://a.test/"], [null, undefined]],
  default: [z.number().default(1), [undefined, 2], ["x", null]],
  prefault: [z.string().prefault("x"), [undefined], [1]],
  catch: [z.number().catch(1), [undefined, "x", null], []],
  coerced: [z.coerce.number(), ["4", true, null], []],
  "coerced text": [z.coerce.string().max(9), [7], []],
  transform: [z.string().transform(Number), ["7"], [7, undefined]],
  piped: [z.string().pipe(z.coerce.number()).pipe(z.number().max(5)), ["4"], [4]],
  preprocess: [z.preprocess((one) => one ?? 1, z.number()), [undefined, null], []],
  trimmed: [z.string().trim().max(3), ["  abc  "], [7]],
  lower: [z.string().toLowerCase().regex(/^a$/), ["A"], [7]],
  refine: [z.number().refine((n) => n > 0), [1], ["1"]],
  int: [z.int().min(1).max(3), [1, 3], [0, 4, 1.5, "1"]],
  above: [z.number().gt(1).lt(3), [2], [1, 3]],
  lengths: [
    z.array(z.string().length(2)).min(1).max(2),
    [["ab"]],
    [[], ["a"], ["ab", "ab", "ab"], undefined],
  ],
  enum: [z.enum(["a", "b"]), ["a"], ["c", undefined]],
  "numeric enum": [z.enum({ A: 0, B: 1 }), [0, 1], ["A", 2]],
  literal: [z.literal(["a", 1, null]), ["a", 1, null], ["b", undefined]],
  "maybe literal": [z.literal(["a", undefined]), ["a"], ["b"]],
  strict: [z.strictObject({ a: z.string() }), [{ a: "x" }], [{ a: "x", b: 1 }, {}]],
  loose: [z.looseObject({ a: z.string() }), [{ a: "x", b: 1 }], [{ b: 1 }]],
  catchall: [z.object({}).catchall(z.number()), [{ a: 1 }], [{ a: "x" }]],
  record: [z.record(z.string(), z.number()), [{ a: 1 }, {}], [{ a: "x" }, []]],
  "keys of numbers": [z.record(z.number(), z.string()), [{ "1": "x" }], [{ "1": 1 }]],
  "partial record": [z.partialRecord(z.enum(["a", "b"]), z.number()), [{ a: 1 }], [{ a: "x" }]],
  "loose record": [z.looseRecord(z.string().regex(/^a/), z.number()), [{ b: "x", a: 1 }], [[]]],
  tuple: [z.tuple([z.string()]).rest(z.number()), [["a", 1]], [{}, "a"]],
  union: [z.union([z.string(), z.coerce.number()]), ["a", "4"], []],
  discriminated: [
    z.discriminatedUnion("t", [
      z.object({ t: z.literal("a") }),
      z.object({ t: z.literal("b"), n: z.number() }),
    ]),
    [{ t: "a" }, { t: "b", n: 1 }],
    [{ t: "c" }, {}],
  ],
  xor: [z.xor([z.string().regex(/^a/), z.string().regex(/b$/)]), ["ax"], [7]],
  intersection: [
    z.intersection(z.strictObject({ a: z.string() }), z.strictObject({ b: z.number() })),
    [{ a: "x", b: 1 }],
    [{ a: "x" }, { a: 1, b: 1 }],
  ],
  nullable: [z.string().nullable(), [null, "a"], [undefined, 1]],
  optional: [z.string().optional(), [undefined], [null]],
  "not optional": [z.string().optional().nonoptional(), ["a"], [1]],
  readonly: [z.array(z.number()).readonly(), [[1]], [["a"]]],
  any: [z.any(), [null, 1], []],
  json: [z.json(), [{ a: [1] }], []],
  lazy: [z.lazy(() => z.string()), ["a"], []],
  tree: [tree, [{ value: "a", kids: [{ value: "b", kids: [] }] }], [{ kids: [] }, { value: "a", kids: {} }]],
  template: [z.templateLiteral(["a", z.number()]), ["a1"], [1]],
  stringbool: [z.stringbool(), ["yes"], [true]],
  described: [z.string().meta({ type: "number", maxLength: 0 }), ["a"], [1]],
};

const fieldOf = (value: unknown): JsonObject => (value === undefined ? {} : { field: value as never });

describe("bounds refuse what is surely wrong, and nothing that the schema takes", () => {
  test.each(Object.keys(kinds))("%s", (kind) => {
    const [field, takes, never] = kinds[kind] as (typeof kinds)[string];
    const schema = z.object({ field, other: z.string() });
    const checked = asChecked(schema);
    for (const value of takes) {
      const input = { ...fieldOf(value), other: "x" };
      expect(schema.safeParse(input).success, `the row is wrong: ${JSON.stringify(input)}`).toBe(true);
      expect(checked.safeParse(input).error?.issues, JSON.stringify(input)).toBeUndefined();
    }
    for (const value of never) {
      const input = { ...fieldOf(value), other: "x" };
      expect(schema.safeParse(input).success, `the row is wrong: ${JSON.stringify(input)}`).toBe(false);
      expect(checked.safeParse(input).success, JSON.stringify(input)).toBe(false);
    }
    // The field beside it is checked, whatever this one is.
    for (const other of [{}, { other: 7 }])
      expect(checked.safeParse({ ...fieldOf(takes[0]), ...other }).success).toBe(false);
  });

  test("whatever the input is, what the schema accepts is within its bounds", () => {
    const values = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(...Object.values(kinds).flatMap(([, ...all]) => all.flat())),
    );
    const pairs = Object.values(kinds).map(([field]) => {
      const schema = z.object({ field });
      return [schema, asChecked(schema)] as const;
    });
    fc.assert(
      fc.property(values, (value) => {
        const input = fieldOf(value);
        for (const [schema, checked] of pairs)
          if (schema.safeParse(structuredClone(input)).success)
            expect(checked.safeParse(input).error?.issues).toBeUndefined();
      }),
      { numRuns: 200 },
    );
  });
});

test("another vendor's schema is taken at its word; one that has none is not known", () => {
  const validate = (value: unknown) => ({ value });
  const said = { type: "object", required: ["a"] };
  const able = {
    "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => said } },
  } as const;
  expect(boundsOf(able)).toEqual(said);
  const unable = { "~standard": { version: 1, vendor: "own", validate } } as const;
  expect(boundsOf(unable)).toBeUndefined();
  const throwing = {
    "~standard": { ...able["~standard"], jsonSchema: { input: () => JSON.parse("{") } },
  } as const;
  expect(boundsOf(throwing)).toBeUndefined();
});

test("what is shown of a schema says all that JSON Schema can say, and leaves the rest open", () => {
  const schema = z.object({ url: z.url(), at: z.date(), n: z.coerce.number().max(5).default(1) });
  expect(shownSchema(schema)).toMatchObject({
    properties: { url: { type: "string", format: "uri" }, at: {}, n: { maximum: 5, default: 1 } },
    required: ["url", "at"],
  });
});
