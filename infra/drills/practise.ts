import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFrom } from "../../functions/wiring/config.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { say, sayJson } from "../cli/output.ts";
import type { Drill } from "./drill.ts";
import { runsOnTarget } from "./facts.ts";
import { board } from "./report/board.ts";
import { type Evidence, evidenceOf, resultJson } from "./report/evidence.ts";
import { html } from "./report/html.ts";
import { markdown } from "./report/markdown.ts";
import { resultLines, verdictLine } from "./report/text.ts";
import { type Result, runDrills } from "./run.ts";
import { ownServers, type Servers, targetServers } from "./stage/servers.ts";
import { checkTarget } from "./stage/target.ts";

export interface Practice {
  readonly all?: boolean;
  readonly target?: string;
  readonly report?: string;
  readonly jobs: number;
  readonly patience?: number;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

/** Runs the drills and says what came of them. Everything that was started is gone when it resolves, also after a Ctrl-C. */
export async function practise(chosen: readonly Drill[], options: Practice): Promise<number> {
  const { target, report, json = false, verbose = false } = options;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      // Who says it again does not want to wait for servers to end: their guards end them.
      if (stop.signal.aborted) process.exit(130);
      stop.abort(new Error("stopped"));
    });
  const hint = (line: string) => process.stderr.write(`${line}\n`);
  await using servers = target === undefined ? ownServers(hint) : targetServers(target, process.env);
  const drills = await choose(chosen, options, servers);
  if (report !== undefined) await mkdir(report, { recursive: true }).catch(unwritable(report));
  const compiled = await mkdtemp(join(tmpdir(), "pawl-drills-"));
  const line = board(process.stderr, drills.length);
  const begun = Date.now();
  const results = await runDrills(drills, {
    servers,
    patienceMs: options.patience ?? 60_000,
    jobs: servers.isOurs ? options.jobs : 1,
    compiled,
    stop: stop.signal,
    onStart: line.start,
    onTold: (drill, text) => {
      if (verbose && !json) line.aside(() => say(`  ${drill.name.padEnd(32)} ${text}`));
    },
    onEnd: (result) => {
      line.end(result.drill);
      line.aside(() => {
        if (json) sayJson(resultJson(result));
        else for (const one of resultLines(result)) say(one);
      });
    },
  }).finally(() => rm(compiled, { recursive: true, force: true, maxRetries: 5 }));
  line.clear();
  const evidence = await evidenceOf(results, { begun, servers, left: skipped(chosen, drills) });
  if (json) sayJson({ verdict: verdictLine(results), ok: isRight(results), seconds: evidence.seconds });
  else for (const one of ["", verdictLine(results)]) say(one);
  if (report !== undefined) await keep(report, evidence, json);
  if (stop.signal.aborted) return 130;
  return isRight(results) ? 0 : 1;
}

const isRight = (results: readonly Result[]) =>
  results.every(({ fate }) => fate === "held" || fate === "not run");
const skipped = (chosen: readonly Drill[], drills: readonly Drill[]) =>
  chosen.filter((one) => !drills.includes(one));

/** On a target, of all only those that can; one that was asked for by name and can't is a mistake. */
async function choose(
  chosen: readonly Drill[],
  { all, target }: Practice,
  servers: Servers,
): Promise<readonly Drill[]> {
  if (target === undefined) return chosen;
  const impossible = chosen.find((one) => !runsOnTarget(one));
  if (!all && impossible)
    throw new PawlError(
      "usage",
      `${impossible.name} can't be run on a target: ${await servers.missing(impossible)}. pawl drill --list says which can`,
    );
  await checkTarget(configFrom({ ...process.env, PAWL_NAMESPACE: target }));
  return chosen.filter(runsOnTarget);
}

/** Said before the drills, not after ten minutes of them. */
const unwritable = (folder: string) => (error: unknown) => {
  throw new PawlError("usage", `--report ${folder}: the folder can't be made: ${messageOf(error)}`);
};

async function keep(folder: string, evidence: Evidence, quiet: boolean): Promise<void> {
  const json = { ...evidence, results: evidence.results.map(resultJson) };
  await writeFile(join(folder, "drills.md"), markdown(evidence));
  await writeFile(join(folder, "drills.html"), html(evidence));
  await writeFile(join(folder, "drills.json"), `${JSON.stringify(json, null, 2)}\n`);
  if (!quiet) say(`The evidence: ${join(folder, "drills.html")} (and .md, .json)`);
}
