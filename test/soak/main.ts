import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { endWhenSaid, say, sayError, sayJson } from "../../infra/cli/output.ts";
import { findNatsServer } from "../../infra/local/find-nats.ts";
import { type RegimeName, regimes } from "./faults/regimes.ts";
import { progressLine } from "./progress.ts";
import { asMarkdown, asText, type Setting, versionsOf } from "./report.ts";
import { isRight, type Result, verdictOf } from "./result.ts";
import { soak } from "./soak.ts";

interface Options {
  readonly minutes: number;
  readonly tasks: number;
  readonly regime: RegimeName | "all";
  readonly seed: string;
  readonly json?: boolean;
  readonly report?: string;
  readonly keep?: boolean;
}

const above0 = (isWhole: boolean) => (text: string) => {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value) && (!isWhole || Number.isInteger(value))) return value;
  throw new InvalidArgumentError(`It should be a ${isWhole ? "whole " : ""}number above 0.`);
};

const program = new Command("soak")
  .description(
    "Tasks with steps, turns and effects on real servers, while everything is killed, frozen and cut off",
  )
  .option("--minutes <m>", "longest time with faults, for each regime", above0(false), 10)
  .option("--tasks <n>", "how many tasks, for each regime", above0(true), 5_000)
  .addOption(
    new Option("--regime <name>", "which servers").choices([...Object.keys(regimes), "all"]).default("all"),
  )
  .option("--seed <s>", "faults are chosen by it; made up when left out", randomBytes(3).toString("hex"))
  .option("--report <file>", "write the report to a file, as Markdown")
  .option("--keep", "keep notes, logs and faults in dist/, also where nothing is wrong")
  .option("--json", "the result in JSON, every fault among it")
  .addHelpText(
    "after",
    `
Regimes:
${Object.entries(regimes)
  .map(([name, { meaning }]) => `  ${name.padEnd(10)} ${meaning}`)
  .join("\n")}

Lost, overlapped, repeated, unexplained, false alarms: each must be 0.
Exit codes: 0 nothing wrong, 1 something was found, 2 used wrongly, 130 stopped by Ctrl-C
Example:
  npm run soak -- --minutes 5 --regime kv --seed 7`,
  )
  .allowExcessArguments(false)
  .exitOverride();

/** Everything that it started has ended when this resolves, also after a Ctrl-C. */
async function run({ minutes, tasks, regime, seed, keep = false, json, report }: Options): Promise<number> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => stop.abort(new Error("stopped")));
  const names = regime === "all" ? (Object.keys(regimes) as RegimeName[]) : [regime];
  const versions = versionsOf(await findNatsServer());
  const setting: Setting = { date: new Date().toISOString().slice(0, 16), seed, tasks, minutes, versions };
  const line = progressLine(process.stderr);
  const results: Result[] = [];
  try {
    for (const name of names) {
      const options = { regime: name, tasks, minutes, seed, keep, stop: stop.signal, onLook: line.tell };
      results.push(await soak(options));
      line.end();
    }
  } catch (error) {
    line.end();
    if (stop.signal.aborted) return 130;
    throw error;
  }
  if (report) writeFileSync(report, asMarkdown(setting, results));
  if (json) sayJson({ ...setting, results: results.map((one) => ({ verdict: verdictOf(one), ...one })) });
  else for (const one of asText(setting, results)) say(one);
  return results.every(isRight) ? 0 : 1;
}

try {
  program.parse();
  process.exitCode = await run(program.opts<Options>());
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exitCode = sayError(error, process.argv.includes("--json"));
}
// A client that still retries in the background must not keep a finished soak alive.
await endWhenSaid();
