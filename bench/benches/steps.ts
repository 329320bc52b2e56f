import type { Bench, Figure, Limit } from "../bench.ts";
import { beside } from "./beside.ts";

const STEPS = 5;
const TASKS = { 1: 500, 16: 1_000 } as const;

function steps(lanes: 1 | 16, least: number): Bench {
  const at = lanes === 1 ? "1 lane" : `${lanes} lanes`;
  return {
    what: `tasks of ${STEPS} journaled null steps on NATS KV, ${at}, queued before`,
    floor: "with `--peers` the better of DBOS and Restate; printed: the bare loop with a write more a step",
    required: `>= ${least} × the better of DBOS and Restate`,
    run: async (stage) => {
      const work = { tasks: stage.size(TASKS[lanes], 16), lanes, steps: STEPS };
      const { pawl, bare, others, cpu } = await beside(stage, work, ["DBOS", "Restate"]);
      const what = `tasks of ${STEPS} steps, NATS KV, ${at}`;
      const figure = (name: string, values: readonly number[], required?: Limit): Figure => {
        const against = { name, values };
        return { what, unit: "/s", pawl, against, ...(required && { required }) };
      };
      const better = pawl.map((_, round) => Math.max(...others.map(({ values }) => values[round] as number)));
      return [
        figure("bare loop, a write a step", bare),
        ...others.map(({ name, values }) => figure(name, values)),
        ...(others.length > 0 ? [figure("the better of DBOS and Restate", better, { least })] : []),
        cpu(`a task of ${STEPS} steps, ${at}`),
      ];
    },
  };
}

export const stepsBenches = { "steps-1": steps(1, 6), "steps-16": steps(16, 5) };
