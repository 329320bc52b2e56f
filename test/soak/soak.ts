import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { configFrom } from "../../functions/wiring/config.ts";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import { startModel } from "../../infra/local/model.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { startBoard } from "../support/http/board.ts";
import { type Deeds, deedsOf } from "./deeds.ts";
import { keepEvidence } from "./evidence.ts";
import { startCrew } from "./faults/crew.ts";
import { disturb, type Fault } from "./faults/disturb.ts";
import { type Channel, randomOf } from "./faults/plan.ts";
import { type RegimeName, regimes } from "./faults/regimes.ts";
import { longestRecovery, respentTokens, restarts } from "./figures.ts";
import { judge } from "./oracle/judge.ts";
import { explain } from "./oracle/reconciled.ts";
import { readStored } from "./oracle/stored.ts";
import { isRight, type Result } from "./result.ts";
import { answerDoubts, look, noTasks, submitAll, type Tasks } from "./tasks.ts";
import { AGENT, inputOf, LANES, modelScript } from "./work.ts";

const RUNNERS = 6;
/** Once the faults stop, everything must be over within this: a lost message is looked for after a minute, within a minute. */
export const BOUND = 180_000;

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

/** The protocol's numbers, as the runners have them. */
const SETTINGS = { PAWL_NAMESPACE: "soak", PAWL_ACK_WAIT: "3s", PAWL_CRASH_LIMIT: "100" };
/** For those who hold no lease: nothing that they ask is cut short. */
const CALM = { PAWL_ACK_WAIT: "30s", PAWL_REQUEST_TIMEOUT: "5s" };

/** One regime, from its servers to its result. Whatever it started is gone when it resolves or throws. */
export async function soak({
  regime,
  tasks: count,
  minutes,
  seed,
  keep,
  stop,
  onLook,
}: SoakOptions): Promise<Result> {
  await using all = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "pawl-soak-"));
  all.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const notes = join(folder, "notes.jsonl");
  await writeFile(notes, "");
  const board = all.use(await startBoard());
  const deeds = deedsOf(notes, board);
  const model = all.use(await startModel(modelScript((asked) => deeds.ask(asked))));
  const servers = all.use(await regimes[regime].start());
  const wireTo = (env: Record<string, string>) => wire(configFrom(env), () => {});
  const settled = { ...servers.direct, ...SETTINGS };
  {
    await using own = await wireTo(settled);
    for (let lane = 0; lane < LANES; lane++)
      await ensureQueue(own, queueOf(own, { agent: AGENT, lane }), "create");
  }
  const submitting = all.use(await wireTo({ ...(servers.ways.at(-1) ?? {}), ...SETTINGS, ...CALM }));
  const looking = all.use(await wireTo({ ...settled, ...CALM }));

  const ownEnv = {
    ...SETTINGS,
    TMPDIR: folder,
    NODE_COMPILE_CACHE: join(folder, "compiled"),
    PAWL_AGENTS_DIR: fileURLToPath(new URL("agents", import.meta.url)),
    ANTHROPIC_API_KEY: "stand-in",
    ANTHROPIC_BASE_URL: model.url,
  };
  const envOf = (place: number) => ({ ...ownEnv, ...servers.ways[place % servers.ways.length] });
  const crew = await startCrew(RUNNERS, envOf, folder, deeds.lastAtWork);
  // Gone before its folder is, in any case.
  const crewOver = new AsyncDisposableStack();
  crewOver.use(crew);
  all.use(crewOver);

  const blinks = monitorEventLoopDelay();
  blinks.enable();
  const begun = Date.now();
  const tasks = noTasks();
  const faults: Fault[] = [];
  const over = new AbortController();
  const end = AbortSignal.any([stop, over.signal, AbortSignal.timeout(minutes * 60_000)]);
  const random = randomOf(`${seed}/work`);
  const injected = Object.entries({ ...servers.faults, runners: crew.inject }).map(([channel, inject]) =>
    disturb(channel as Channel, `${seed}/${regime}`, inject, faults, end),
  );
  const submitted = submitAll(
    submitting,
    tasks,
    count,
    () => inputOf(random, { board: board.url, notes }),
    end,
  );
  // Whoever fails ends the faults, and is heard below.
  for (const one of [...injected, submitted]) one.catch(() => over.abort());
  let phase: Progress["phase"] = "faults";
  const tell = () => onLook({ regime, phase, begun, tasks, faults, deeds: deeds.all });
  const lookOn = async () => {
    await look(looking, tasks);
    deeds.refresh();
    tell();
    await sleep(1_000, undefined, { signal: stop }).catch(() => {});
  };
  const left = () => [...tasks.open.values()].filter((state) => state !== "in_doubt").length;
  while (!end.aborted) {
    await lookOn();
    if (tasks.accepted.size === count && left() === 0) over.abort();
  }
  await Promise.all([...injected, submitted]);
  const faultsOver = Date.now();
  phase = "calm";
  while (!stop.aborted && tasks.open.size > 0 && Date.now() < faultsOver + BOUND) {
    await answerDoubts(looking, tasks, deeds.all);
    await lookOn();
  }
  const calmAt = Date.now();
  while (!stop.aborted && Date.now() < calmAt + 30_000 && (await inQueues(looking)) > 0) await lookOn();
  await crewOver.disposeAsync();
  blinks.disable();
  stop.throwIfAborted();
  phase = "explaining";
  tell();
  deeds.refresh();

  const accepted = [...tasks.accepted];
  await using own = await wireTo({ ...settled, PAWL_REQUEST_TIMEOUT: "1900ms" });
  const stored = await readStored(own, accepted);
  const judgement = judge({ accepted, deeds: deeds.all, looks: board.looks, faults, stored });
  const explained = await explain(own, stored, stop);
  const doubtful = new Set(
    [...stored.values()].filter(({ doubts }) => doubts.length > 0).map(({ id }) => id),
  );
  const result: Result = {
    regime,
    seed,
    accepted: accepted.length,
    begun,
    faultMs: faultsOver - begun,
    calmMs: calmAt - faultsOver,
    faults,
    judgement,
    explained,
    longestRecovery: longestRecovery(deeds.all, doubtful),
    respentTokens: respentTokens(deeds.all, model),
    restarts: restarts(deeds.all),
    keyed: board.posts.length - new Set(board.posts.map(({ path }) => path)).size,
    endedThemselves: crew.endedThemselves(),
    blinkMs: blinks.max / 1e6,
  };
  if (isRight(result) && !keep) return result;
  return { ...result, evidence: await keepEvidence(own, folder, result) };
}

async function inQueues(deps: Wired): Promise<number> {
  let sum = 0;
  for (let lane = 0; lane < LANES; lane++) {
    const state = await deps.bus.state(queueOf(deps, { agent: AGENT, lane })).catch(() => undefined);
    sum += state ? state.pending + state.inFlight : 1;
  }
  return sum;
}
