import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { planOf } from "./plan/plan.ts";
import { play } from "./play.ts";
import { search } from "./search.ts";
import { shrink } from "./shrink.ts";
import { told } from "./story.ts";
import { takeGlobals } from "./world/globals.ts";

interface Options {
  readonly seeds?: number;
  readonly from: number;
  readonly minutes?: number;
  readonly seed?: number;
  readonly jobs: number;
  readonly json?: boolean;
  readonly shrink: boolean;
}

const wholeNumber = (text: string): number => {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError("It should be a whole number.");
  return Number(text);
};

const program = new Command("sim")
  .description("Plays simulations of Pawl's own code, one for each seed, until a promise is broken.")
  .addOption(new Option("--seeds <n>", "how many seeds to try (10000 by default)").argParser(wholeNumber))
  .addOption(new Option("--from <seed>", "the first of them").argParser(wholeNumber).default(1))
  .addOption(new Option("--minutes <m>", "stop after so long").argParser(Number))
  .addOption(new Option("--seed <seed>", "one seed, with its whole story").argParser(wholeNumber))
  .addOption(
    new Option("--jobs <n>", "processes at once").argParser(wholeNumber).default(availableParallelism()),
  )
  .option("--no-shrink", "do not look for a shorter plan that breaks the same promise")
  .option("--json", "print what was found as JSON")
  .addHelpText(
    "after",
    "\nExamples:\n  npm run sim -- --seeds 20000\n  npm run sim -- --minutes 10 --from 500000\n  npm run sim -- --seed 4711\n\nEnds with 0 when nothing was broken, 1 when something was, 2 when it was used wrongly.",
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

program.parse();
const options = program.opts<Options>();
process.exitCode = options.seed === undefined ? await many(options) : await one(options, options.seed);

/** One seed with its story; a broken one is made as small as it can be first. */
async function one({ json, shrink: isShrunk }: Options, seed: number): Promise<number> {
  const globals = takeGlobals();
  const plan = planOf(seed);
  const { broken } = await play(plan, globals);
  const small = broken && isShrunk ? await shrink(plan, broken.promise, globals) : plan;
  const played = await play(small, globals, true);
  globals.restore();
  if (json)
    console.log(
      JSON.stringify({
        seed,
        plan: small,
        broken: broken && { promise: broken.promise, message: broken.message },
        story: played.story,
      }),
    );
  else console.log(told(small, played));
  return broken ? 1 : 0;
}

async function many(options: Options): Promise<number> {
  const { from, minutes, jobs, json } = options;
  const seeds = options.seeds ?? (minutes === undefined ? 10_000 : 1_000_000_000);
  const isWatched = process.stderr.isTTY && !json;
  const found = await search({
    from,
    seeds,
    jobs,
    ...(minutes !== undefined && { ms: minutes * 60_000 }),
    onProgress: ({ seeds: done, seconds }) => {
      if (isWatched)
        process.stderr.write(
          `\r${done} seeds, ${Math.round(done / Math.max(1, seconds))} a second, nothing broken `,
        );
    },
  });
  if (isWatched) process.stderr.write("\n");
  const { broken, ...summary } = found;
  if (json) {
    console.log(JSON.stringify(found));
    return broken ? 1 : 0;
  }
  const { seeds: done, steps, seconds, faults } = summary;
  const rate = Math.round(done / Math.max(0.001, seconds));
  console.log(
    `${done} seeds, ${steps} steps in ${seconds.toFixed(1)} s: ${rate} seeds a second on ${jobs} processes.`,
  );
  console.log(
    `Faults: ${Object.entries(faults)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(", ")}.`,
  );
  if (!broken) {
    console.log("No promise was broken.");
    return 0;
  }
  console.log(`Seed ${broken.seed} broke a promise: ${broken.promise}: ${broken.message}\n`);
  return one(options, broken.seed);
}
