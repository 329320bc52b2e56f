import { availableParallelism } from "node:os";
import { search } from "../../test/sim/search.ts";
import type { Bench, Figure } from "../bench.ts";
import { interleaved } from "../rounds.ts";

const SEEDS = 1_000;

export const simBenches = {
  sim: {
    what: "seeds that `npm run sim` plays, on all cores",
    floor: "printed only",
    required: "printed only",
    run: async (stage): Promise<Figure[]> => {
      const seeds = stage.size(SEEDS, 50);
      const jobs = availableParallelism();
      let from = 1;
      const play = async () => {
        const { seeds: played, seconds, broken } = await search({ from, seeds, jobs });
        if (broken) throw new Error(`Seed ${broken.seed} broke a promise: ${broken.message}`);
        from += seeds;
        return played / seconds;
      };
      const { pawl = [] } = await interleaved(stage, { pawl: play }, { isWarmedUp: true });
      return [{ what: "simulated seeds", unit: "/s", pawl }];
    },
  },
} satisfies Record<string, Bench>;
