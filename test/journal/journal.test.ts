import fc from "fast-check";
import { expect, test } from "vitest";
import { type CallKind, type Entry, emptyHead, extended, known } from "../../shared/journal/entries.ts";
import { splitText } from "../../shared/journal/parts.ts";
import { type Trail, trail } from "../../shared/journal/trail.ts";

/** The handler itself awaits every call. */
const alone = () => true;
const versions = { journal: 1, agent: 2 };

/** A handler that makes these calls one after the other: the journal that it leaves. */
function journalOf(calls: readonly (readonly [CallKind, string])[]): Entry[] {
  const path = trail([], versions, alone);
  return calls.flatMap(([kind, name], i): Entry[] => {
    const { key, at, alone, leave } = path.enter(kind, name);
    leave();
    if (kind === "step") return [{ kind, key, at, alone, value: i }];
    return [
      { kind: "intent", of: "effect", key, at, alone },
      { kind: "receipt", key, value: i },
    ];
  });
}

function walk(path: Trail, calls: readonly (readonly [CallKind, string])[]) {
  return calls.map(([kind, name]) => {
    const call = path.enter(kind, name);
    call.leave();
    return call.known?.kept.value;
  });
}

test("the same calls find their results, names in a loop by their ordinal", () => {
  const calls = [
    ["step", "read"],
    ["effect", "post"],
    ["step", "read"],
    ["step", "read"],
  ] as const;
  expect(walk(trail(journalOf(calls), versions, alone), calls)).toEqual([0, 1, 2, 3]);
  expect(walk(trail(journalOf(calls.slice(0, 2)), versions, alone), calls)).toEqual([
    0,
    1,
    undefined,
    undefined,
  ]);
});

test.each([
  ["renamed", [["step", "z"]], /Call 1 of the handler is step z#1, but .* it is step a#1/],
  [
    "inserted",
    [
      ["step", "new"],
      ["step", "a"],
    ],
    /is step new#1, but .* it is step a#1/,
  ],
  ["removed", [["step", "c"]], /is step c#1, but .* it is step a#1/],
  [
    "reordered",
    [
      ["step", "a"],
      ["step", "c"],
      ["effect", "b"],
    ],
    /Call 2 .* is step c#1, but .* effect b#1/,
  ],
  ["a step made an effect", [["effect", "a"]], /is effect a#1, but .* it is step a#1/],
] as const)("a call that was %s is told from the journal's, and both are named", (_, calls, message) => {
  const journal = journalOf([
    ["step", "a"],
    ["effect", "b"],
    ["step", "c"],
  ]);
  const go = () => walk(trail(journal, versions, alone), calls as unknown as [CallKind, string][]);
  expect(go).toThrow(message);
  expect(go).toThrow(/begun by version 1 .* this is version 2/);
  expect(go).toThrow(expect.objectContaining({ code: "journal_mismatch" }));
});

test("calls in parallel may come in another order than before", () => {
  const first = trail([], versions, alone);
  const [a, b] = [first.enter("step", "a"), first.enter("step", "b")];
  b.leave();
  const c = first.enter("step", "after-b");
  a.leave();
  c.leave();
  const last = first.enter("step", "last");
  const entry = ({ key, at, alone }: typeof a): Entry => ({ kind: "step", key, at, alone, value: key });
  expect([a.alone, b.alone, c.alone, last.alone]).toEqual([true, false, false, false]);

  const again = trail([b, c, a, last].map(entry), versions, alone);
  const calls = [again.enter("step", "a"), again.enter("step", "b"), again.enter("step", "after-b")];
  expect(calls.map((call) => call.known?.kept.value)).toEqual(["a#1", "b#1", "after-b#1"]);
  for (const call of calls) call.leave();
  // What comes after may come in another place the next time: it is found by its name, and by nothing else.
  expect(again.enter("step", "last").known?.kept.value).toBe("last#1");
  expect(() => trail([b, c, a, last].map(entry), versions, alone).enter("step", "other")).toThrow(
    /Call 1 .* step a#1/,
  );
});

test("names that can't be kept are refused", () => {
  for (const name of ["", "a#b", "a\nb", "x".repeat(129), undefined, 7]) {
    expect(() => trail([], versions, alone).enter("step", name as string)).toThrow(/name of a step is/);
  }
});

test("an effect's entries fold into what is known of its last try", () => {
  const place = { key: "post#1", at: 0, alone: true };
  const intent: Entry = { kind: "intent", of: "effect", ...place };
  const state = (...entries: Entry[]) => known(entries).get("post#1");
  expect(state(intent)).toMatchObject({ state: "open", tries: 1 });
  const unsure: Entry = { kind: "unsure", key: "post#1", why: "reset" };
  expect(state(intent, unsure)).toMatchObject({ state: "unsure" });
  expect(state(intent, unsure, intent)).toMatchObject({ state: "open", tries: 2 });
  const receipt: Entry = { kind: "receipt", key: "post#1", value: 7 };
  expect(state(intent, unsure, intent, receipt)).toMatchObject({ state: "done", kept: { value: 7 } });
  expect(() => known([receipt])).toThrow(/receipt of post#1 without its intent/);
});

test("however entries are appended, pages and head together list all of them, in order, and the head stays small", () => {
  const size = fc.integer({ min: 0, max: 8_000 });
  fc.assert(
    fc.property(fc.array(fc.array(size, { minLength: 1, maxLength: 5 }), { maxLength: 60 }), (batches) => {
      let head = emptyHead({ id: "t", fence: 1, epoch: 0, createdAt: 0 }, 1, "s");
      const pages = new Map<string, readonly Entry[]>();
      const all: Entry[] = [];
      batches.forEach((sizes, i) => {
        const added = sizes.map(
          (chars, j): Entry => ({
            kind: "step",
            key: `k${i}.${j}#1`,
            at: 0,
            alone: true,
            value: "x".repeat(chars),
          }),
        );
        const next = extended(head, added, `s${i}`);
        if (next.page) pages.set(`p${i}`, next.page);
        head = next.page ? { ...next.head, pages: [...next.head.pages, `p${i}`] } : next.head;
        all.push(...added);
        expect(JSON.stringify(head).length).toBeLessThan(100_000);
      });
      const listed = [...head.pages.flatMap((name) => pages.get(name) ?? []), ...head.recent];
      expect(listed).toEqual(all);
      expect(head.count).toBe(all.length);
    }),
  );
});

test("a text is split so that every part is well-formed", () => {
  for (const text of ["", "a", "👩".repeat(200_000), `x${"👩".repeat(200_000)}`, "é".repeat(600_001)]) {
    const parts = splitText(text);
    expect(parts.join("") === text).toBe(true);
    expect(parts.every((part) => part.isWellFormed() && part.length <= 300_000)).toBe(true);
  }
});
