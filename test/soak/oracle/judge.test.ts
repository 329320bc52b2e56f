import { describe, expect, test } from "vitest";
import type { Deed } from "../deeds.ts";
import type { Fault } from "../faults/disturb.ts";
import { type Evidence, judge } from "./judge.ts";
import type { StoredTask } from "./stored.ts";

/** An execution that does all of its calls, one every 10 ms. */
const CALLS = ["prepare", "ask/turn 1", "ask/post/use_1", "ask/turn 2", "mail", "finish"];
const deed = (run: string, at: number, what: Deed["what"], name?: string): Deed => ({
  at,
  id: "e1",
  run,
  pid: Number(run.split("-")[0]),
  what,
  ...(name && { deed: name }),
});
const whole = (run: string, from: number): Deed[] => [
  deed(run, from, "start"),
  ...CALLS.map((name, i) => deed(run, from + 10 * (i + 1), "act", name)),
  deed(run, from + 70, "end"),
];

/** As the journal has it: each call stored 5 ms after it was made. */
const task = (from: number, more: Partial<StoredTask> = {}): StoredTask => ({
  id: "e1",
  state: "completed",
  mail: "verified",
  completedAt: from + 75,
  result: { prepared: "p" },
  calls: new Map(
    CALLS.map((name, i) => [
      name,
      { storedAt: from + 10 * (i + 1) + 5, value: name === "prepare" ? "p" : {} },
    ]),
  ),
  doubts: [],
  settled: [],
  executions: 1,
  createdAt: 0,
  ...more,
});

const evidence = (more: Partial<Evidence> = {}): Evidence => ({
  accepted: ["e1"],
  deeds: whole("7-a", 1_000),
  looks: [],
  faults: [],
  stored: new Map([["e1", task(1_000)]]),
  ...more,
});
const stored = (one: StoredTask) => ({ stored: new Map([["e1", one]]) });
const kinds = (given: Evidence) => judge(given).wrong.map(({ kind, id }) => `${kind} ${id}`);
const killed = (pid: number, at: number): Fault => ({ kind: "runner killed", at, until: at, pid });
const frozen = (pid: number, at: number, until: number): Fault => ({ kind: "runner frozen", at, until, pid });

test("a task that was done once is right, and so is one whose first execution was cut off", () => {
  expect(judge(evidence())).toEqual({ wrong: [], late: 0, doubts: 0 });
  const cutOff = whole("6-b", 100).slice(0, 2);
  expect(kinds(evidence({ deeds: [...cutOff, ...whole("7-a", 1_000)] }))).toEqual([]);
});

describe("a loss", () => {
  test.each(["running", "in_doubt", "failed", "cancelled"] as const)("of a task that is %s", (state) => {
    expect(kinds(evidence(stored(task(1_000, { state, result: {} }))))).toEqual(["lost e1"]);
  });
  test("of a task that has no document, or that nobody saw end", () => {
    expect(kinds(evidence({ stored: new Map() }))).toEqual(["lost e1"]);
    const deeds = whole("7-a", 1_000).filter(({ what }) => what !== "end");
    expect(kinds(evidence({ deeds }))).toEqual(["lost e1"]);
  });
});

describe("an overlap", () => {
  const next = whole("7-a", 1_000);
  test("is any act after the next execution has started", () => {
    for (const late of [deed("6-b", 1_001, "act", "prepare"), deed("6-b", 1_001, "end")]) {
      const deeds = [deed("6-b", 500, "start"), late, ...next];
      expect(kinds(evidence({ deeds }))).toContain("overlapped e1");
    }
  });
  test("is one that begins when the task is over", () => {
    const zombie = [deed("6-b", 5_000, "start"), deed("6-b", 5_001, "act", "prepare")];
    expect(kinds(evidence({ deeds: [...next, ...zombie] }))).toContain("overlapped e1");
  });
  test("is not that a handler noticed that it must stop", () => {
    expect(
      kinds(evidence({ deeds: [deed("6-b", 500, "start"), deed("6-b", 1_500, "aborted"), ...next] })),
    ).toEqual([]);
  });
  const posted = (at: number) => deed("6-b", at, "act", "ask/turn 1");
  test("is not the one request that a process was about to send when it froze", () => {
    const deeds = [deed("6-b", 500, "start"), posted(1_003), ...next];
    const faults = [frozen(6, 600, 1_002)];
    expect(judge(evidence({ deeds, faults }))).toMatchObject({ wrong: [], late: 1 });
    // Also where its answer is stored already, as the next one has asked for it.
    const stored = [deed("6-b", 500, "start"), posted(1_030), ...next];
    expect(judge(evidence({ deeds: stored, faults: [frozen(6, 600, 1_028)] }))).toMatchObject({
      wrong: [],
      late: 1,
    });
    // Another process was frozen; it woke long before; it wrote to a file, or posted, and had looked; it did two things.
    expect(kinds(evidence({ deeds, faults: [frozen(5, 600, 1_002)] }))).toEqual(["overlapped e1"]);
    expect(kinds(evidence({ deeds: [deed("6-b", 500, "start"), posted(3_000), ...next], faults }))).toContain(
      "overlapped e1",
    );
    expect(kinds(evidence({ deeds: [...deeds, deed("6-b", 1_003, "act", "finish")], faults }))).toEqual([
      "overlapped e1",
    ]);
    expect(kinds(evidence({ deeds: [...deeds, posted(1_004)], faults }))).toEqual(["overlapped e1"]);
    const post = deed("6-b", 1_003, "act", "ask/post/use_1");
    expect(kinds(evidence({ deeds: [deed("6-b", 500, "start"), post, ...next], faults }))).toEqual([
      "overlapped e1",
    ]);
  });
  test("is what happens to more of those that were frozen than chance would hit", () => {
    const ids = ["e1", "e2", "e3"];
    const each = <T extends { id: string }>(of: readonly T[]) =>
      ids.flatMap((id) => of.map((one) => ({ ...one, id })));
    const deeds = each([deed("6-b", 500, "start"), posted(1_003), ...next]).map((one) => ({
      ...one,
      run: `${one.run}${one.id}`,
    }));
    const tasks = new Map(ids.map((id) => [id, task(1_000, { id })]));
    const given = { accepted: ids, deeds, stored: tasks, faults: [frozen(6, 600, 1_002)] };
    expect(kinds(evidence(given))).toEqual(ids.map((id) => `overlapped ${id}`));
  });
});

describe("a repeat", () => {
  test.each(CALLS)("is %s once more, after it was stored", (name) => {
    const again = [deed("7-a", 900, "start"), ...whole("7-a", 1_000), deed("7-a", 1_080, "act", name)];
    expect(kinds(evidence({ deeds: again }))).toContain("repeated e1");
  });
  test("is not a call whose first answer was lost", () => {
    const before = [deed("6-b", 100, "start"), deed("6-b", 120, "act", "ask/turn 1")];
    expect(kinds(evidence({ deeds: [...before, ...whole("7-a", 1_000)] }))).toEqual([]);
  });

  const twice = [deed("6-b", 100, "start"), deed("6-b", 150, "act", "mail"), ...whole("7-a", 1_000)];
  test("is a mail that was done twice, stored or not", () => {
    expect(kinds(evidence({ deeds: twice }))).toEqual(["repeated e1"]);
    expect(kinds(evidence({ deeds: twice, ...stored(task(1_000, { mail: "blind" })) }))).toEqual([
      "repeated e1",
    ]);
  });
  test("is not a mail whose receiver honours its key, or said that it had not come", () => {
    expect(kinds(evidence({ deeds: twice, ...stored(task(1_000, { mail: "keyed" })) }))).toEqual([]);
    const look = { path: "e1/key", found: false };
    expect(kinds(evidence({ deeds: twice, looks: [{ ...look, at: 140 }] }))).toEqual([]);
    expect(kinds(evidence({ deeds: twice, looks: [{ ...look, at: 160 }] }))).toEqual(["repeated e1"]);
  });
  test("is a result that another answer than the stored one went into", () => {
    expect(kinds(evidence(stored(task(1_000, { result: { prepared: "q" } }))))).toEqual(["repeated e1"]);
  });
});

describe("a doubt", () => {
  const doubts = [{ effect: "mail#1", begun: 145, at: 6_000 }];
  const inDoubt = (faults: Fault[]) =>
    evidence({
      deeds: [deed("6-b", 100, "start"), ...whole("7-a", 7_000)],
      ...stored(task(7_000, { doubts })),
      faults,
    });
  test("is explained by what hit its holder, or a server, between the intent and the doubt", () => {
    expect(judge(inDoubt([killed(6, 150)]))).toEqual({ wrong: [], late: 0, doubts: 1 });
    expect(judge(inDoubt([frozen(6, 140, 4_000)])).doubts).toBe(1);
    expect(judge(inDoubt([{ kind: "broker killed", at: 200, until: 900 }])).doubts).toBe(1);
  });
  test("is wrong where nothing had happened, or to another, or long after", () => {
    for (const faults of [
      [],
      [killed(5, 150)],
      [killed(6, 6_500)],
      [{ kind: "broker killed", at: 8_000, until: 9_000 } as const],
    ])
      expect(kinds(inDoubt([...faults]))).toEqual(["doubt e1"]);
  });
});
