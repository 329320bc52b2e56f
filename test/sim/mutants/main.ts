import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { type Mutant, mutantNamed, mutants } from "./guards.ts";
import { type Hunted, hunt } from "./hunt.ts";

interface Options {
  readonly only?: readonly string[];
  readonly from: number;
  readonly seeds: number;
  readonly minutes: number;
  readonly json?: boolean;
  readonly list?: boolean;
}

const wholeNumber = (text: string): number => {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError("It should be a whole number.");
  return Number(text);
};

const program = new Command("sim:mutants")
  .description("Switches guards of Pawl off, one at a time, and plays simulations until each is missed.")
  .option("--only <names...>", "these mutants only")
  .option("--list", "say which mutants there are")
  .addOption(new Option("--from <seed>", "the first seed").argParser(wholeNumber).default(1))
  .addOption(new Option("--seeds <n>", "seeds for each, at most").argParser(wholeNumber).default(100_000))
  .addOption(new Option("--minutes <m>", "minutes for each, at most").argParser(Number).default(2))
  .option("--json", "print the table as JSON")
  .addHelpText(
    "after",
    "\nExamples:\n  npm run sim:mutants\n  npm run sim:mutants -- --only takeover-wait in-doubt\n\nEnds with 0 when every mutant was killed, 1 when one survived, 2 when it was used wrongly.",
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

program.parse();
process.exitCode = await main(program.opts<Options>());

async function main({ only, from, seeds, minutes, json, list }: Options): Promise<number> {
  let chosen: readonly Mutant[];
  try {
    chosen = only ? only.map(mutantNamed) : mutants;
  } catch (error) {
    console.error(`${(error as Error).message}. --list says which there are.`);
    return 2;
  }
  if (list) {
    for (const { name, guard } of chosen) console.log(`${name.padEnd(24)} ${guard}`);
    return 0;
  }
  const all: Hunted[] = [];
  if (!json)
    console.log(
      "| mutant | the guard that it lacks | seeds until killed | promise broken |\n| --- | --- | --- | --- |",
    );
  for (const mutant of chosen) {
    const hunted = await hunt(mutant, { from, seeds, ms: minutes * 60_000, jobs: availableParallelism() });
    all.push(hunted);
    if (!json) console.log(row(hunted));
  }
  const alive = all.filter(({ killedBy }) => !killedBy);
  if (json) console.log(JSON.stringify(all));
  else console.log(`\n${all.length - alive.length} of ${all.length} mutants were killed.`);
  return alive.length === 0 ? 0 : 1;
}

function row({ mutant, seeds, killedBy }: Hunted): string {
  const tries = mutant.plan ? "its plan" : seeds;
  const fate = killedBy ? `${tries} | ${killedBy.promise} |` : `survived ${tries} | |`;
  return `| ${mutant.name} | ${mutant.guard} | ${fate}`;
}
