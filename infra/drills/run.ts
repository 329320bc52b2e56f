import { messageOf } from "../../shared/errors/errors.ts";
import type { Drill } from "./drill.ts";
import { gather } from "./judge/evidence.ts";
import { type Figures, figuresOf } from "./judge/figures.ts";
import { type Judgement, judge } from "./judge/judge.ts";
import type { Servers } from "./stage/servers.ts";
import { AGENT, FRUGAL, setStage } from "./stage/stage.ts";

/** "held": all five promises. "failed": the drill itself could not be carried out, which proves nothing. */
export type Fate = "held" | "broken" | "failed" | "not run";

export interface Result {
  readonly drill: Drill;
  readonly fate: Fate;
  readonly seconds: number;
  /** Why it failed, or was not run. */
  readonly why?: string;
  readonly judgement?: Judgement;
  readonly figures?: Figures;
  /** The reconciliation's own word, and what it named. */
  readonly reconciled?: string;
  readonly findings?: readonly string[];
  /** What happened, as it happened. */
  readonly told: readonly string[];
}

export interface Running {
  readonly servers: Servers;
  /** How long a task may take to come to its end before it counts as lost. */
  readonly patienceMs: number;
  /** How many at once. */
  readonly jobs: number;
  /** Where runners keep their compiled code. */
  readonly compiled: string;
  readonly stop: AbortSignal;
  readonly onStart?: (drill: Drill) => void;
  readonly onTold?: (drill: Drill, line: string) => void;
  readonly onEnd?: (result: Result) => void;
}

/** The longest first, a few at a time: most of the time they wait. Results are in the order of the drills. */
export async function runDrills(drills: readonly Drill[], running: Running): Promise<Result[]> {
  const results = new Map<Drill, Result>();
  const left = drills.toSorted((a, b) => b.seconds - a.seconds);
  const worker = async () => {
    for (let drill = left.shift(); drill && !running.stop.aborted; drill = left.shift()) {
      running.onStart?.(drill);
      const result = await runDrill(drill, running);
      results.set(drill, result);
      running.onEnd?.(result);
    }
  };
  await Promise.all(Array.from({ length: running.jobs }, worker));
  return drills.flatMap((drill) => results.get(drill) ?? []);
}

/** A server that was killed counts its deliveries anew: what was said about them can't be compared. */
const COUNTS_ANEW: ReadonlySet<Drill["fault"]> = new Set([
  "broker killed",
  "cluster leader killed",
  "cluster leader cut off",
]);

/** One, from its servers to its verdict. Whatever it started is gone when this resolves. */
export async function runDrill(drill: Drill, running: Running): Promise<Result> {
  const { servers, patienceMs, compiled, stop } = running;
  let begun = performance.now();
  const seconds = () => Math.round((performance.now() - begun) / 100) / 10;
  const why = await servers.missing(drill);
  if (why !== undefined) return { drill, fate: "not run", seconds: 0, why, told: [] };
  let told: readonly string[] = [];
  try {
    await using place = await servers.open(drill);
    stop.throwIfAborted();
    // Servers that several use are started once.
    begun = performance.now();
    const hears = servers.isOurs && !COUNTS_ANEW.has(drill.fault);
    const agents = drill.budget === undefined ? [AGENT] : [FRUGAL];
    const tell = (line: string) => running.onTold?.(drill, line);
    await using stage = await setStage({ place, patienceMs, hears, agents, compiled, tell });
    told = stage.told;
    const stopped = new Promise<never>((_, reject) => {
      stop.addEventListener("abort", () => reject(stop.reason), { once: true });
    });
    await Promise.race([drill.run(stage), stopped]);
    await Promise.race([stage.settled(), stopped]);
    await stage.stopAll();
    const evidence = await gather(stage, agents, drill.budget);
    const judgement = judge(evidence);
    const { line, findings } = evidence.reconciled;
    const fate = judgement.broken.length === 0 ? "held" : "broken";
    const figures = figuresOf(evidence, stage.deps.settings);
    return { drill, fate, seconds: seconds(), judgement, figures, reconciled: line, findings, told };
  } catch (error) {
    return { drill, fate: "failed", seconds: seconds(), why: messageOf(error), told };
  }
}
