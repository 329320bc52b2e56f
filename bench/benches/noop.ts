import type { Bench, Figure, Limit, Stage } from "../bench.ts";
import { bareRate } from "../floors/bare.ts";
import { pawlRate } from "../pawl.ts";
import { openPeers, type PeerName } from "../peers/peers.ts";
import { interleaved } from "../rounds.ts";
import type { Work } from "../systems.ts";

/** So many tasks a second that a peer needs about as long as Pawl for its share of them. */
const TASKS = { 1: 1_000, 16: 3_000 } as const;

const REQUIRED: Partial<Record<PeerName, Limit>> = {
  "graphile-worker": { least: 1 },
  DBOS: { least: 3 },
  Restate: { least: 5 },
};

function noop(lanes: 1 | 16, least: number): Bench {
  const at = `${lanes} ${lanes === 1 ? "lane" : "lanes"}`;
  const run = async (stage: Stage): Promise<Figure[]> => {
    const work: Work = { tasks: stage.size(TASKS[lanes], 32), lanes, steps: 0 };
    await using peers = await openPeers(stage);
    const measured = await interleaved(stage, {
      bare: () => bareRate(work),
      pawl: () => pawlRate(work),
      ...Object.fromEntries(
        peers.open.map(({ name, peer, share }) => [
          name,
          () => peer.rate({ ...work, tasks: Math.max(32, Math.round(work.tasks * share)) }),
        ]),
      ),
    });
    const { bare = [], pawl = [] } = measured;
    const what = `no-op tasks, NATS KV, ${at}`;
    return [
      { what, unit: "/s", pawl, against: { name: "bare loop", values: bare }, required: { least } },
      ...peers.open.map(
        ({ name }): Figure => ({
          what,
          unit: "/s",
          pawl,
          against: { name, values: measured[name] ?? [] },
          ...(REQUIRED[name] && { required: REQUIRED[name] }),
        }),
      ),
    ];
  };
  return {
    what: `no-op tasks on NATS KV, ${at}, queued before`,
    floor: `raw nats.js, ${lanes} ${lanes === 1 ? "consumer" : "consumers"}: next, two compare-and-set writes, confirmed ack; with \`--peers\` graphile-worker, DBOS, Restate, BullMQ, pg-boss`,
    required: `>= ${least} ×; graphile-worker >= 1 ×, DBOS >= 3 ×, Restate >= 5 ×`,
    run,
  };
}

export const noopBenches = { "noop-1": noop(1, 1), "noop-16": noop(16, 0.8) };
