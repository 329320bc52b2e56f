import { Command, InvalidArgumentError } from "commander";
import { drills } from "../../infra/drills/table.ts";
import { mutantNamed } from "../sim/mutants/guards.ts";
import { guarded } from "./guards.ts";
import { type Hunted, hunt } from "./hunt.ts";

interface Options {
  readonly only?: readonly string[];
  readonly jobs: number;
  readonly json?: boolean;
}

const jobsOf = (text: string): number => {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError("It should be a whole number from 1 to 99.");
  return Number(text);
};

const program = new Command("drills:mutants")
  .description(
    "Runs each drill on code that lacks the guard that it stands on: each must fail, and name the promise.",
  )
  .option("--only <drills...>", "these drills only")
  .option("--jobs <n>", "how many at once", jobsOf, 3)
  .option("--json", "print the table as JSON")
  .addHelpText(
    "after",
    "\nExamples:\n  npm run drills:mutants\n  npm run drills:mutants -- --only zombie-ack\n\nEnds with 0 when every drill missed its guard, 1 when one did not, 2 when it was used wrongly.",
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

program.parse();
process.exitCode = await main(program.opts<Options>());

async function main({ only, jobs, json }: Options): Promise<number> {
  const unknown = only?.find((name) => !drills.some((one) => one.name === name));
  if (unknown !== undefined) {
    console.error(
      `There is no drill ${JSON.stringify(unknown)}: npx pawl drill --list says which there are.`,
    );
    return 2;
  }
  const left = guarded.filter(({ drill }) => !only || only.includes(drill));
  const all: Hunted[] = [];
  if (!json)
    console.log(
      "| drill | the guard that is taken out | promise broken | what is said |\n| --- | --- | --- | --- |",
    );
  const worker = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const hunted = await hunt(next);
      all.push(hunted);
      if (!json) console.log(row(hunted));
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  const alive = all.filter(({ isMissed }) => !isMissed);
  if (json) console.log(JSON.stringify(all));
  else console.log(`\n${all.length - alive.length} of ${all.length} drills missed their guard.`);
  return alive.length === 0 ? 0 : 1;
}

function row({ drill, mutant, breaks, broken, isMissed, why, exitCode }: Hunted): string {
  const { guard } = mutantNamed(mutant);
  const detail = broken.find(({ promise }) => promise === breaks)?.detail ?? "";
  const fate = isMissed ? `${breaks} | ${detail.slice(0, 160)}` : `NOT MISSED (exit ${exitCode}) | ${why}`;
  return `| ${drill} | ${mutant}: ${guard} | ${fate.replaceAll("\n", " ")} |`;
}
