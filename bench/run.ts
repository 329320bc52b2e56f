import { messageOf } from "../shared/errors/errors.ts";
import { type Bench, NotHere, type Stage } from "./bench.ts";
import { machineNow } from "./machine.ts";
import { installPeers } from "./peers/peers.ts";
import type { NotRun, Result } from "./report.ts";
import { type Row, rowOf } from "./spread.ts";

/** One bench after the other; one that can't be run here, or goes wrong, is named, and the others go on. */
export async function runBenches(chosen: Readonly<Record<string, Bench>>, stage: Stage): Promise<Result> {
  if (stage.hasPeers) await installPeers(stage.tell);
  const machine = await machineNow(stage.hasPeers);
  const rows: Row[] = [];
  const notRun: NotRun[] = [];
  for (const [name, bench] of Object.entries(chosen)) {
    stage.stop.throwIfAborted();
    try {
      const figures = await bench.run({ ...stage, tell: (doing) => stage.tell(`${name}: ${doing}`) });
      rows.push(...figures.map((figure) => rowOf(name, figure)));
    } catch (error) {
      stage.stop.throwIfAborted();
      const [why = ""] = messageOf(error).split("\n");
      notRun.push({ bench: name, why, isFailure: !(error instanceof NotHere) });
    }
  }
  return { machine: machine(), rounds: stage.rounds, rows, notRun };
}
