import type { Bench, Figure, Limit } from "../bench.ts";
import type { PeerName } from "../peers/peers.ts";
import { beside } from "./beside.ts";

const TASKS = { 1: 1_000, 16: 3_000 } as const;

const REQUIRED: Partial<Record<PeerName, Limit>> = {
  "graphile-worker": { least: 1 },
  DBOS: { least: 3 },
  Restate: { least: 5 },
};

function noop(lanes: 1 | 16, least: number): Bench {
  const [at, consumers] = lanes === 1 ? ["1 lane", "1 consumer"] : [`${lanes} lanes`, `${lanes} consumers`];
  return {
    what: `no-op tasks on NATS KV, ${at}, queued before`,
    floor: `raw nats.js, ${consumers}: next, two compare-and-set writes, confirmed ack; with \`--peers\` graphile-worker, DBOS, Restate, BullMQ, pg-boss`,
    required: `>= ${least} ×; graphile-worker >= 1 ×, DBOS >= 3 ×, Restate >= 5 ×`,
    run: async (stage) => {
      const tasks = stage.size(TASKS[lanes], 32);
      const { pawl, bare, others, cpu } = await beside(stage, { tasks, lanes, steps: 0 });
      const what = `no-op tasks, NATS KV, ${at}`;
      const figure = (name: string, values: readonly number[], required?: Limit): Figure => {
        const against = { name, values };
        return { what, unit: "/s", pawl, against, ...(required && { required }) };
      };
      return [
        figure("bare loop", bare, { least }),
        ...others.map(({ name, values }) => figure(name, values, REQUIRED[name])),
        cpu(`a no-op task, ${at}`),
      ];
    },
  };
}

export const noopBenches = { "noop-1": noop(1, 1), "noop-16": noop(16, 0.8) };
