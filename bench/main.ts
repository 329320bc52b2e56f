import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { endWhenSaid, say, sayError, sayJson } from "../infra/cli/output.ts";
import { stopServers } from "../infra/local/process.ts";
import type { Bench } from "./bench.ts";
import { benches } from "./benches.ts";
import { asSvg } from "./chart.ts";
import { progressLine } from "./progress.ts";
import { asMarkdown, asText, isMissed, type Result } from "./report.ts";
import { runBenches } from "./run.ts";

interface Options {
  readonly only: readonly string[];
  readonly rounds: number;
  readonly scale: number;
  readonly peers?: boolean;
  readonly large?: boolean;
  readonly json?: boolean;
  readonly out?: string;
}

const RESULTS = fileURLToPath(new URL("results", import.meta.url));
const ROUNDS = 5;
/** After a Ctrl-C. */
const STOP_WITHIN = 5_000;

const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It should be a whole number above 0.");
};
const share = (text: string): number => {
  const value = Number(text);
  if (value > 0 && value <= 1) return value;
  throw new InvalidArgumentError("It should be a number above 0, and 1 at most.");
};
const named = (text: string, before: readonly string[]): readonly string[] => {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.filter((name) => !(name in benches));
  if (unknown.length === 0) return [...before, ...names];
  throw new InvalidArgumentError(
    `There is no ${unknown.join(", ")}. There are ${Object.keys(benches).join(", ")}.`,
  );
};

const program = new Command("bench")
  .description("What Pawl costs, as ratios to the least it could cost, or to what people would pick instead")
  .option("--only <names>", "these benches, separated by commas", named, [])
  .option("--peers", "also graphile-worker, DBOS, Restate, BullMQ and pg-boss, installed and started here")
  .option("--rounds <n>", "how often each side is measured, in turns", wholeNumber, ROUNDS)
  .option("--scale <share>", "only so much of each bench's work, to try it: such a run is not kept", share, 1)
  .option("--large", "the largest sizes too, which take an hour")
  .option("--out <folder>", "where to write Markdown and chart (bench/results, for whole runs)")
  .option("--json", "the result in JSON")
  .addHelpText(
    "after",
    `
Benches:
${Object.entries(benches)
  .map(([name, { what, required }]) => `  ${name.padEnd(20)} ${what} (${required})`)
  .join("\n")}

Exit codes: 0 done, 1 a required ratio was missed, 2 used wrongly, 130 stopped by Ctrl-C
Examples:
  npm run bench -- --only noop-1,noop-16 --peers
  npm run bench -- --only start --rounds 1 --scale 0.1 --json`,
  )
  .allowExcessArguments(false)
  .exitOverride();

async function run(options: Options): Promise<number> {
  const { only, rounds, scale, peers: hasPeers = false, large: isLarge = false, json } = options;
  const stop = new AbortController();
  const late = Promise.withResolvers<never>();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      stop.abort(new Error("stopped"));
      // Servers that wait for clients whose work is under way end with this process.
      setTimeout(() => late.reject(stop.signal.reason), STOP_WITHIN);
    });
  // All of a run's folders are in one, which goes with it. A server that must not be root's has to get in.
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  const line = progressLine(process.stderr);
  // What the peers' packages call deprecated is no progress of ours.
  process.noDeprecation = true;
  // A server that is waited for must keep this process alive, though its pipes do not.
  const alive = setInterval(() => {}, 60_000);
  const chosen = Object.fromEntries(
    Object.entries<Bench>(benches).filter(([name]) => only.length === 0 || only.includes(name)),
  );
  try {
    const size = (full: number, least = 1) => Math.max(least, Math.round(full * scale));
    const stage = { rounds, isLarge, hasPeers, stop: stop.signal, size, tell: line.tell };
    const result = await Promise.race([runBenches(chosen, stage), late.promise]);
    line.end();
    // A try proves nothing.
    const isWhole = scale === 1 && rounds >= ROUNDS;
    if (options.out || isWhole) keep(result, options.out ?? RESULTS);
    if (json) sayJson(result);
    else for (const text of asText(result)) say(text);
    return isMissed(result) ? 1 : 0;
  } catch (error) {
    line.end();
    if (stop.signal.aborted) return 130;
    throw error;
  } finally {
    if (stop.signal.aborted) await stopServers();
    clearInterval(alive);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function keep(result: Result, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const name = result.machine.date.replace(":", "-");
  writeFileSync(join(folder, `${name}.svg`), asSvg(result));
  writeFileSync(join(folder, `${name}.md`), asMarkdown(result, `${name}.svg`));
}

try {
  program.parse();
  process.exitCode = await run(program.opts<Options>());
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exitCode = sayError(error, process.argv.includes("--json"));
}
await endWhenSaid();
