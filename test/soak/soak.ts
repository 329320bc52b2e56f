import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Deeds } from "./deeds.ts";
import { keepEvidence } from "./evidence.ts";
import { disturb, type Fault } from "./faults/disturb.ts";
import { type Channel, randomOf } from "./faults/plan.ts";
import type { RegimeName } from "./faults/regimes.ts";
import { longestRecovery, respentTokens, restarts } from "./figures.ts";
import { judge } from "./oracle/judge.ts";
import { type Beside, explain, reconcileBeside } from "./oracle/reconciled.ts";
import { readStored } from "./oracle/stored.ts";
import { isRight, type Result } from "./result.ts";
import { type Stage, setStage } from "./stage.ts";
import { answerDoubts, inQueues, look, noTasks, submitAll, type Tasks } from "./tasks.ts";
import { inputOf } from "./work.ts";

/** Once the faults stop, everything must be over within this: a lost message is looked for after a minute, within a minute. */
export const BOUND = 180_000;
/** Acks that were lost come again within this. */
const ACKS = 30_000;

export interface SoakOptions {
  readonly regime: RegimeName;
  readonly tasks: number;
  readonly minutes: number;
  readonly seed: string;
  /** Keep what is known also where nothing is wrong. */
  readonly keep: boolean;
  readonly stop: AbortSignal;
  /** Told how it is, every second. */
  readonly onLook: (now: Progress) => void;
}

export interface Progress {
  readonly regime: RegimeName;
  readonly phase: "faults" | "calm" | "explaining";
  readonly begun: number;
  readonly tasks: Tasks;
  readonly faults: readonly Fault[];
  readonly deeds: Deeds["all"];
}

/** What was done, before anybody judges it. */
interface Done extends Pick<Result, "begun" | "faultMs" | "calmMs" | "faults" | "blinkMs"> {
  readonly tasks: Tasks;
  readonly beside: Beside;
}

/** One regime, from its servers to its result. Whatever it started is gone when it resolves or throws. */
export async function soak(options: SoakOptions): Promise<Result> {
  await using stage = await setStage(options.regime);
  const done = await disturbed(stage, options);
  const { result, deps } = await judged(stage, options, done);
  await using own = deps;
  if (isRight(result) && !options.keep) return result;
  return { ...result, evidence: await keepEvidence(own, stage.folder, result) };
}

/** Tasks and faults side by side; then no more faults, until all is over or the bound is. */
async function disturbed(stage: Stage, options: SoakOptions): Promise<Done> {
  const { deeds, looking, places } = stage;
  const { regime, seed, stop } = options;
  const blinks = monitorEventLoopDelay();
  blinks.enable();
  const begun = Date.now();
  const tasks = noTasks();
  const faults: Fault[] = [];
  const over = new AbortController();
  const end = AbortSignal.any([stop, over.signal, AbortSignal.timeout(options.minutes * 60_000)]);
  const random = randomOf(`${seed}/work`);
  const channels = Object.entries({ ...stage.faults, runners: stage.crew.inject });
  const works = [
    ...channels.map(([name, inject]) => disturb(name as Channel, `${seed}/${regime}`, inject, faults, end)),
    submitAll(stage.submitting, tasks, options.tasks, () => inputOf(random, places), end),
  ];
  const beside = reconcileBeside(stage.reconciling, end);
  // Whoever fails ends the faults, and is heard below.
  for (const one of works) one.catch(() => over.abort());
  let phase: Progress["phase"] = "faults";
  const lookOn = async () => {
    await look(looking, tasks);
    deeds.refresh();
    options.onLook({ regime, phase, begun, tasks, faults, deeds: deeds.all });
    await sleep(1_000, undefined, { signal: stop }).catch(() => {});
  };
  while (!end.aborted) {
    await lookOn();
    const isLeft = [...tasks.open.values()].some((state) => state !== "in_doubt");
    if (tasks.accepted.size === options.tasks && !isLeft) over.abort();
  }
  await Promise.all(works);
  const faultsOver = Date.now();
  phase = "calm";
  while (!stop.aborted && tasks.open.size > 0 && Date.now() < faultsOver + BOUND) {
    await answerDoubts(looking, tasks, deeds.all);
    await lookOn();
  }
  const calm = Date.now();
  while (!stop.aborted && Date.now() < calm + ACKS && (await inQueues(looking)) > 0) await lookOn();
  await stage.stopRunners();
  blinks.disable();
  stop.throwIfAborted();
  phase = "explaining";
  await lookOn();
  return {
    tasks,
    faults,
    begun,
    faultMs: faultsOver - begun,
    calmMs: calm - faultsOver,
    beside: await beside,
    blinkMs: blinks.max / 1e6,
  };
}

/** What was seen against what is stored, and every sequence explained. Nothing moves any more. */
async function judged(stage: Stage, { regime, seed, stop }: SoakOptions, { tasks, ...done }: Done) {
  const { deeds, board, model, crew } = stage;
  const deps = await stage.reconciling();
  const accepted = [...tasks.accepted];
  const stored = await readStored(deps, accepted);
  const evidence = { accepted, deeds: deeds.all, looks: board.looks, faults: done.faults, stored };
  const doubtful = [...stored.values()].filter(({ doubts }) => doubts.length > 0).map(({ id }) => id);
  const result: Result = {
    regime,
    seed,
    accepted: accepted.length,
    ...done,
    judgement: judge(evidence),
    explained: await explain(deps, stored, stop),
    longestRecovery: longestRecovery(deeds.all, new Set(doubtful)),
    respentTokens: respentTokens(deeds.all, model),
    restarts: restarts(deeds.all),
    keyed: board.posts.length - new Set(board.posts.map(({ path }) => path)).size,
    endedThemselves: crew.endedThemselves(),
  };
  return { result, deps };
}
