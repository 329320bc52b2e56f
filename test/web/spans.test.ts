import { expect, test } from "vitest";
import { submitted } from "../../shared/task/create.ts";
import type { HistoryEntry, State, Task } from "../../shared/task/document.ts";
import type { Call } from "../../shared/web/pages/journal.ts";
import { type Span, scaleOf, spansOf } from "../../shared/web/pages/spans.ts";

const envelope = { id: "t", agent: "a", lane: 0, input: {}, inputHash: "", at: 0, stamp: "s", by: "me" };

function task(state: State, ...history: [number, string, State, number?][]): Task {
  const entry = ([at, event, to, fence = 1]: (typeof history)[number]): HistoryEntry => ({
    ...{ at, event, state: to, fence, stamp: `${at}`, by: "me" },
  });
  return { ...submitted(envelope, "Q"), state, history: history.map(entry), updatedAt: 0 } as unknown as Task;
}
const step = (key: string, at: number | undefined, endedAt: number): Call => ({
  ...{ n: 1, key, kind: "step", at, endedAt, state: "done" },
});
const brief = ({ kind, name, from, to, ending }: Span) => [kind, name, from, to, ending];

test("runs from claim to their own last word, with the time in the queue before", () => {
  const told = task(
    "completed",
    [0, "submit", "dispatched", 0],
    [5, "claim", "running"],
    [30, "wait", "waiting"],
  );
  const more = task(
    "completed",
    ...(
      [
        [90, "wake", "dispatched"],
        [92, "claim", "running", 2],
        [99, "complete", "completed", 2],
      ] as const
    ).map((one) => [...one] as [number, string, State, number?]),
  );
  const whole = { ...told, history: [...told.history, ...more.history] } as Task;
  const wait: Call = { n: 2, key: "go#1", kind: "wait", at: 29, endedAt: 92, state: "done" };
  const spans = spansOf(whole, [step("read#1", 10, 20), wait], 1_000);
  expect(spans.map(brief)).toEqual([
    ["run", "fence 1", 5, 30, "done"],
    ["step", "read#1", 10, 20, "done"],
    ["wait", "go#1", 29, 92, "done"],
    ["run", "fence 2", 92, 99, "done"],
  ]);
  expect(spans.map(({ queued }) => queued)).toEqual([0, undefined, undefined, 90]);
});

test("a run that was cut off ends with its last word, and the gap to the takeover is said", () => {
  const crashed = task(
    "running",
    [0, "submit", "dispatched", 0],
    [5, "claim", "running"],
    [60, "takeover", "running", 2],
  );
  const turn: Call = { n: 2, key: "ask#1", kind: "turn", at: 25, state: "open" };
  const spans = spansOf(crashed, [step("read#1", 10, 20), turn], 70);
  expect(spans.map(brief)).toEqual([
    ["run", "fence 1", 5, 60, "lost"],
    ["step", "read#1", 10, 20, "done"],
    ["turn", "ask#1", 25, 60, "lost"],
    ["run", "fence 2", 60, 70, "open"],
  ]);
  expect(spans[0]?.heard).toBe(25);
});

test("what is not known is not made up: an old step has an end and no beginning", () => {
  const old = task(
    "completed",
    [0, "submit", "dispatched", 0],
    [5, "claim", "running"],
    [30, "complete", "completed"],
  );
  const [, one] = spansOf(old, [step("read#1", undefined, 20)], 99);
  expect(one).toEqual({ kind: "step", name: "read#1", to: 20, ending: "done" });
});

test.each([
  [50, "open", 50],
  [99, "done", 90],
])("a sleep until 90 is seen at %d as %s", (now, ending, to) => {
  const asleep = task(
    "scheduled",
    [0, "submit", "dispatched", 0],
    [5, "claim", "running"],
    [30, "sleep", "scheduled"],
  );
  const sleep: Call = { n: 1, key: "sleep#1", kind: "wait", at: 29, state: "open", until: 90 };
  expect(spansOf(asleep, [sleep], now).at(-1)).toMatchObject({ ending, to });
});

test("long times in which nothing ran are folded, and order stays", () => {
  const day = 86_400_000;
  const spans: Span[] = [
    { kind: "run", name: "1", from: 0, to: 1_000, ending: "done" },
    { kind: "wait", name: "go", from: 900, to: day, ending: "done" },
    { kind: "run", name: "2", from: day, to: day + 1_000, ending: "done" },
  ];
  const { at, isFolded } = scaleOf(spans);
  expect(isFolded).toBe(true);
  expect(at(0)).toBe(0);
  expect(at(1_000)).toBeGreaterThan(40);
  expect(at(day)).toBeLessThan(60);
  expect(at(day + 1_000)).toBeCloseTo(100);
  expect(scaleOf([{ kind: "run", name: "1", from: 0, to: 10, ending: "done" }]).isFolded).toBe(false);
  expect(scaleOf([{ kind: "run", name: "1", from: 7, to: 7, ending: "done" }]).at(7)).toBe(0);
});
