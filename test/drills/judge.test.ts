import { expect, test } from "vitest";
import type { PromiseName } from "../../infra/drills/facts.ts";
import type { Evidence } from "../../infra/drills/judge/evidence.ts";
import { judge } from "../../infra/drills/judge/judge.ts";
import type { Deed } from "../../infra/drills/outside/acts.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import type { Task } from "../../shared/task/document.ts";

/** A task that was begun by A, killed, and done by B: nothing about it is wrong. */
const event = (event: string, at: number) => ({ event, at, state: "running", fence: 1, stamp: "s", by: "r" });
const deed = (
  run: string,
  at: number,
  what: Deed["what"],
  deed?: string,
  kind: Deed["kind"] = "note",
): Deed => ({
  id: "t",
  run,
  pid: Number(run.split("-")[0]),
  at,
  what,
  kind,
  ...(deed !== undefined && { deed }),
});
const task = {
  id: "t",
  state: "completed",
  result: { by: "2-b" },
  input: { acts: [{ do: "effect", name: "post", how: "blind" }] },
  settled: [{ queue: "Q", seq: 1, dispatch: 1, outcome: "completed", at: 70 }],
  history: [event("claim", 1), event("takeover", 40), event("complete", 70)],
};
const entries = [
  { kind: "step", key: "first#1", when: 20 },
  { kind: "receipt", key: "post#1", when: 60 },
];
const deeds = [
  deed("1-a", 10, "start"),
  deed("1-a", 11, "act", "first"),
  deed("2-b", 50, "start"),
  deed("2-b", 55, "act", "post", "post"),
  deed("2-b", 65, "end"),
];
const word = (said: string, delivery: number, at: number) => ({
  word: said,
  delivery,
  at,
  queue: "Q",
  seq: 1,
});

function evidence(
  more: Partial<Evidence> = {},
  changed: object = {},
  journal: readonly object[] = entries,
): Evidence {
  const stored = new Map([
    ["t", { task: { ...task, ...changed } as unknown as Task, entries: journal as Entry[] }],
  ]);
  return {
    given: [{ id: "t", agent: "drill", ends: "completed" }],
    claims: [],
    deeds,
    looks: [],
    words: [word("+WPI", 1, 12), word("+WPI", 2, 52), word("+ACK", 2, 80)],
    stored,
    queues: [{ stream: "Q", lastSeq: 1, left: 0, ackWaitMs: 2_000 }],
    settled: new Map([["Q 1", 1]]),
    reconciled: { ok: true, line: "All explained." } as Evidence["reconciled"],
    paid: new Map(),
    budgets: new Map(),
    ...more,
  };
}

const brokenBy = (one: Evidence) => [...new Set(judge(one).broken.map(({ promise }) => promise))];

test("nothing is found where nothing is wrong", () => {
  expect(judge(evidence())).toMatchObject({ broken: [] });
  expect(judge(evidence()).promises.every(({ holds }) => holds)).toBe(true);
});

const late = (more: Deed) => [...deeds, more].sort((a, b) => a.at - b.at);
const wrongs: readonly (readonly [what: string, breaks: PromiseName, is: Evidence])[] = [
  ["it ended twice", "one result", evidence({}, { history: [...task.history, event("fail", 80)] })],
  ["its result is nobody's", "one result", evidence({}, { result: { by: "3-c" } })],
  ["the first acts beside the second", "no overlap", evidence({ deeds: late(deed("1-a", 51, "act", "x")) })],
  [
    "a process acts that can't know",
    "no overlap",
    evidence({ claims: [{ at: 10, silent: 1, why: "it was cut off" }] }),
  ],
  [
    "a stale word",
    "no overlap",
    evidence({ words: [word("+WPI", 1, 12), word("+WPI", 2, 52), word("+WPI", 1, 53), word("+ACK", 2, 80)] }),
  ],
  [
    "a stored step is done again",
    "never repeated",
    evidence({ deeds: late(deed("2-b", 51, "act", "first")) }),
  ],
  [
    "a blind effect is done twice",
    "never repeated",
    evidence({ deeds: late(deed("1-a", 12, "act", "post", "post")) }),
  ],
  [
    "nobody is asked about an effect that happened",
    "never repeated",
    evidence({}, { state: "cancelled" }, entries.slice(0, 1)),
  ],
  [
    "it is begun again when it is over",
    "never repeated",
    evidence({ claims: [{ at: 40, over: "t", why: "x" }] }),
  ],
  [
    "more is paid than it may cost",
    "never repeated",
    evidence({ paid: new Map([["t", 0.03]]), budgets: new Map([["t", 0.02]]) }),
  ],
  ["it is left running", "nothing lost", evidence({}, { state: "running" })],
  ["there is no document", "nothing lost", evidence({ stored: new Map() })],
  [
    "a message is left",
    "nothing lost",
    evidence({ queues: [{ stream: "Q", lastSeq: 1, left: 1, ackWaitMs: 1 }] }),
  ],
  ["it is acked before it is settled", "nothing lost", evidence({ words: [word("+ACK", 1, 69)] })],
  ["it is acked and never settled", "nothing lost", evidence({ settled: new Map() }, { settled: [] })],
  ["a sequence is settled twice", "explained", evidence({ settled: new Map([["Q 1", 2]]) })],
  [
    "the reconciliation says so",
    "explained",
    evidence({ reconciled: { ok: false, line: "1 is not" } as Evidence["reconciled"] }),
  ],
];

test.each(wrongs)("%s: %s is broken", (_, breaks, is) => {
  expect(brokenBy(is)).toContain(breaks);
});

test("what a redrive has done again on purpose is no repetition, but for effects", () => {
  const history = [...task.history, event("redrive", 45)];
  const steps = late(deed("2-b", 51, "act", "first"));
  expect(brokenBy(evidence({ deeds: steps }, { history }))).toEqual([]);
  const effects = late(deed("2-b", 62, "act", "post", "post"));
  expect(brokenBy(evidence({ deeds: effects }, { history }))).toEqual(["never repeated"]);
});

test("an effect whose receiver honours its key may arrive twice", () => {
  const input = { acts: [{ do: "effect", name: "post", how: "keyed" }] };
  const twice = late(deed("1-a", 12, "act", "post", "post"));
  expect(brokenBy(evidence({ deeds: twice }, { input }))).toEqual([]);
});
