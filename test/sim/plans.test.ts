import { afterAll, describe, expect, test } from "vitest";
import { mutants } from "./mutants/guards.ts";
import type { Plan } from "./plan/plan.ts";
import { planOf } from "./plan/plan.ts";
import type { Program } from "./plan/program.ts";
import { quiet } from "./plan/quiet.ts";
import type { Played } from "./play.ts";
import { startPlayer } from "./search.ts";

const player = startPlayer();
afterAll(() => player[Symbol.asyncDispose]());

const said = ({ story }: Played, what: RegExp) => story.filter((line) => what.test(line.what)).length;

test("a seed stands for one story, byte for byte", async () => {
  for (const seed of [3, 14, 159, 2_653]) {
    const [one, other] = [await player.play(planOf(seed)), await player.play(planOf(seed))];
    expect(one.steps).toBeGreaterThan(50);
    expect(JSON.stringify(one.story)).toBe(JSON.stringify(other.story));
  }
});

test("a quiet plan is played to its end, and reconciled", async () => {
  const played = await player.play(quiet([{ do: "step", name: "s", ms: 20, failsUntil: 0 }]));
  expect(played.broken).toBeUndefined();
  expect(said(played, /^task t1: complete by r1\.1/)).toBe(1);
  expect(said(played, /^task t1: execution \d+: step s#1$/)).toBe(1);
});

test("a runner that was frozen while it opened the journal does not start the handler", async () => {
  const program: Program = [
    { do: "step", name: "s", ms: 15_000, failsUntil: 0 },
    { do: "work", name: "w", ms: 26_000 },
  ];
  const runners = ["r1", "r2"].map((name, i) => ({ name, version: 1, skew: 0, after: 1 + i }));
  const frozen = { kind: "freezes", ms: 86_000, asleep: false } as const;
  const dies = { kind: "dies", when: "before" } as const;
  const faults = [
    // The first holder dies in its step, and its successor is frozen as it writes its fence to the journal.
    { process: "any runner", what: "+WPI", after: 0, mishap: dies },
    { process: "any runner", what: "put journal", after: 0, mishap: frozen },
  ];
  // On waking it finds the answer or its time-out first: seeds decide.
  for (let seed = 1; seed <= 8; seed++) {
    const played = await player.play(quiet(program, { seed, runners, faults, calmAt: 200_000 }));
    expect(said(played, /put journal t1 0: freezes/)).toBe(1);
    expect(said(played, /execution \d+ begins/)).toBe(2);
    expect(played.broken).toBeUndefined();
  }
});

test("a holder that never began its effect says so, however long the store is away", async () => {
  const program: Program = [
    { do: "effect", name: "e", ms: 0, verify: false, honoursKey: false, throws: "never" },
  ];
  const faults = [
    // The intent is stored, and its holder does not hear of it until its lease is lost.
    { process: "any runner", what: "put journal", after: 0, mishap: { kind: "unanswered" } },
    {
      process: "any runner",
      what: "get journal",
      after: 0,
      mishap: { kind: "cut", from: "store", ms: 90_000, loses: "requests" },
    },
  ] as const;
  const played = await player.play(quiet(program, { faults, calmAt: 120_000 }));
  expect(said(played, /lease\.lost/)).toBe(1);
  expect(played.broken).toBeUndefined();
  expect(said(played, /^task t1: effect pawl-\S+ happens/)).toBe(1);
  expect(said(played, /by person/)).toBe(0);
});

test("code that goes on after a race, beside a wait that it lost, is not overtaken by the next execution", async () => {
  const race: Program[number] = {
    do: "parallel",
    how: "race",
    branches: [
      [{ do: "step", name: "s", ms: 500, failsUntil: 0 }],
      [{ do: "event", name: "e", timeout: 30_000 }],
    ],
  };
  // The event is there before the wait is recorded, so that the task is handed on at once.
  const operations: Plan["operations"] = [
    { at: 10, task: "t1", do: "submit" },
    { at: 300, task: "t1", do: "send", name: "e" },
  ];
  const played = await player.play(quiet([race, { do: "ignore", name: "i", ms: 3_000 }], { operations }));
  expect(said(played, /what it waits for has come/)).toBe(1);
  expect(played.broken).toBeUndefined();
});

test("a queue that its agent has not made yet is not taken for one that went", async () => {
  // The message is there when the runner first looks.
  const runners = [{ name: "r1", version: 1, skew: 0, after: 100, limit: 300_000 }];
  const operations = [
    { at: 10, task: "t1", do: "submit" },
    // While the parent tries to publish its child, whose function comes after its own.
    { at: 5_000, task: "t1", do: "reconcile" },
  ] as const;
  const program: Program = [{ do: "child", key: "c", awaits: true }];
  const played = await player.play(quiet(program, { runners, operations }));
  expect(said(played, /publish\.retry .*no stream takes sim\.tasks\.child/)).toBeGreaterThan(0);
  expect(played.broken).toBeUndefined();
});

test("a lane that went after a reconciliation was cut off, and is drained by now, is not named", async () => {
  const program: Program = [{ do: "work", name: "w", ms: 20_000 }];
  const { agents, ...plan } = quiet(program, {
    // Of two lanes it is in the second.
    operations: [
      { at: 10, task: "t2", do: "submit" },
      { at: 5_000, task: "t2", do: "reconcile" },
    ],
    faults: [{ process: "operator", what: "survivors", after: 0, mishap: { kind: "dies", when: "before" } }],
    calmAt: 60_000,
  });
  const main = { ...agents.main, lanes: 2, lanesLater: 1 };
  const played = await player.play({ ...plan, agents: { ...agents, main } });
  expect(said(played, /survivors: dies/)).toBe(1);
  expect(said(played, /sequence 1 of SIM_main_1_g1 is acked/)).toBe(1);
  expect(played.broken).toBeUndefined();
});

describe("a function's invocations are too short", () => {
  const runners = [{ name: "r1", version: 1, skew: 0, after: 1, limit: 40_000 }];

  test("for a takeover that begins with asking after the holder: it waits in several", async () => {
    const program: Program = [{ do: "step", name: "s", ms: 9_000, failsUntil: 0 }];
    // The message is there when the runner first looks.
    const short = [{ name: "r1", version: 1, skew: 0, after: 100, limit: 30_000 }];
    // Its server has another life by then, so that the holder might only have to come back.
    const serverFaults = [{ at: 500, kind: "the broker is killed", ms: 800, forgets: 0 }] as const;
    const dies = { kind: "dies", when: "before" } as const;
    const faults = [{ process: "any runner", what: "put journal", after: 0, mishap: dies }];
    const plan = quiet(program, { runners: short, faults, serverFaults, calmAt: 60_000 });
    const played = await player.play(plan);
    expect(played.broken).toBeUndefined();
    expect(said(played, /^task t1: takeover by/)).toBe(1);
    expect(said(played, /^task t1: complete by/)).toBe(1);
  });

  test("for a handler that stores nothing: its attempts fail, and say why", async () => {
    const played = await player.play(quiet([{ do: "work", name: "w", ms: 60_000 }], { runners }));
    expect(played.broken).toBeUndefined();
    expect(said(played, /"as":"failed".*attempts_exhausted: Failed 2 times.*stored nothing new/)).toBe(1);
  });

  test("for a turn that comes after work which is not journaled: no turn is begun, and its attempts fail", async () => {
    const program: Program = [
      { do: "work", name: "w", ms: 9_000 },
      { do: "llm", name: "ask", turns: 1, tools: "none" },
    ];
    const played = await player.play(quiet(program, { runners }));
    expect(played.broken).toBeUndefined();
    expect(said(played, /is asked$/)).toBe(0);
    expect(said(played, /"as":"failed".*too little time for what comes next/)).toBe(1);
  });

  test("but the same work in a step is done once, and the turn in the next invocation", async () => {
    const program: Program = [
      { do: "step", name: "s", ms: 9_000, failsUntil: 0 },
      { do: "llm", name: "ask", turns: 1, tools: "none" },
    ];
    const played = await player.play(quiet(program, { runners }));
    expect(played.broken).toBeUndefined();
    expect(said(played, /execution \d+: step s#1$/)).toBe(1);
    expect(said(played, /^task t1: complete by/)).toBe(1);
  });
});

test("an effect that is begun again each time does not hide that its process dies each time", async () => {
  const program: Program = [
    {
      do: "parallel",
      how: "settled",
      branches: [
        [
          { do: "work", name: "w", ms: 20 },
          { do: "crash", name: "c", times: 1_000 },
        ],
        [{ do: "effect", name: "e", ms: 4_000, verify: false, honoursKey: true, throws: "never" }],
      ],
    },
  ];
  const played = await player.play(quiet(program));
  expect(played.broken).toBeUndefined();
  expect(said(played, /^task t1: exhaust/)).toBe(1);
  expect(said(played, /^task t1: execution \d+ begins/)).toBeLessThan(20);
});

test("a redrive may forget a wait before an effect that an earlier redrive has kept: nobody has gone on from it", async () => {
  const program: Program = [
    { do: "work", name: "w", ms: 26_000 },
    { do: "approval", name: "a", catches: false },
    { do: "effect", name: "e", ms: 4_000, verify: true, honoursKey: false, throws: "retry" },
  ];
  const { agents, ...rest } = quiet(program, { calmAt: 60_000 });
  const operations = [
    { at: 4_461, task: "t1", do: "submit" },
    { at: 83_049, task: "t1", do: "reject", name: "a" },
  ] as const;
  const redrives = [
    { after: 4_119, do: "redrive from", place: 0.4 },
    { after: 2_216, do: "redrive" },
  ] as const;
  const main = { ...agents.main, attempts: 1 };
  const played = await player.play({
    ...rest,
    agents: { ...agents, main },
    operations,
    redrives,
    isReconciled: false,
  });
  expect(played.broken).toBeUndefined();
  expect(said(played, /^task t1: redrive by/)).toBe(2);
});

describe("the plan of a mutant holds with the guard", () => {
  const planned = mutants.filter(({ plan }) => plan);
  test.each(planned)("$name", async ({ plan }) => {
    expect((await player.play(plan as Plan)).broken).toBeUndefined();
  });
});

test("seeds that broke a promise once hold", async () => {
  // A doubt about an effect that its holder never began: it said so in the journal while the doubt was being written.
  // Waits that a redrive forgets next to each other, with their ends between them.
  // Code that ran into its time limit beside a wait, and heeds no signal: its successor waits for the grace.
  // An answer that a redrive has forgotten, in a journal whose head has not got it any more: it is given again.
  for (const seed of [257_409, 259_568, 427_475, 1_018_275])
    expect((await player.play(planOf(seed))).broken, String(seed)).toBeUndefined();
});
