import type { Bench, Figure, Stage } from "../bench.ts";
import { bareRate } from "../floors/bare.ts";
import { pawlRate } from "../pawl.ts";
import { openPeers, type PeerName } from "../peers/peers.ts";
import { interleaved } from "../rounds.ts";
import type { Work } from "../systems.ts";

const STEPS = 5;
const TASKS = { 1: 500, 16: 1_000 } as const;
const JOURNALING: readonly PeerName[] = ["DBOS", "Restate"];

function steps(lanes: 1 | 16, least: number): Bench {
  const at = `${lanes} ${lanes === 1 ? "lane" : "lanes"}`;
  const run = async (stage: Stage): Promise<Figure[]> => {
    const work: Work = { tasks: stage.size(TASKS[lanes], 16), lanes, steps: STEPS };
    await using peers = await openPeers(stage, JOURNALING);
    const measured = await interleaved(stage, {
      bare: () => bareRate(work),
      pawl: () => pawlRate(work),
      ...Object.fromEntries(
        peers.open.map(({ name, peer, share }) => [
          name,
          () => peer.rate({ ...work, tasks: Math.max(16, Math.round(work.tasks * share)) }),
        ]),
      ),
    });
    const { pawl = [], bare = [] } = measured;
    const what = `tasks of ${STEPS} steps, NATS KV, ${at}`;
    const figure = (name: string, values: readonly number[]): Figure => ({
      what,
      unit: "/s",
      pawl,
      against: { name, values },
    });
    const all = peers.open.map(({ name }) => measured[name] ?? []);
    const better = pawl.map((_, round) => Math.max(...all.map((values) => values[round] as number)));
    return [
      figure("bare loop, a write a step", bare),
      ...peers.open.map(({ name }) => figure(name, measured[name] ?? [])),
      ...(all.length === JOURNALING.length
        ? [{ ...figure("the better of DBOS and Restate", better), required: { least } }]
        : []),
    ];
  };
  return {
    what: `tasks of ${STEPS} journaled null steps on NATS KV, ${at}, queued before`,
    floor: "with `--peers` the better of DBOS and Restate; printed: the bare loop with a write more a step",
    required: `>= ${least} × the better of DBOS and Restate`,
    run,
  };
}

export const stepsBenches = { "steps-1": steps(1, 6), "steps-16": steps(16, 5) };
