import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { messageOf, PawlError } from "../../../shared/errors/errors.ts";
import { agentsFolder } from "../../agents.ts";
import { FOLDER } from "../../creds/write.ts";
import { examine, examineLive, unsaid } from "../../doctor/examine.ts";
import { contractsOf, partsIn, type Source } from "../../doctor/read.ts";
import type { RuleText } from "../../doctor/rule.ts";
import { allRules } from "../../doctor/rules.ts";
import { type Examined, ruleLines, saidLines } from "../../doctor/said.ts";
import { sarif } from "../../doctor/sarif.ts";
import { say, sayJson } from "../output.ts";

interface Options {
  readonly config?: readonly string[];
  readonly nats?: string;
  readonly stream?: string;
  readonly consumer?: string;
  readonly monitor?: string;
  readonly creds?: string;
  readonly rules?: boolean;
  readonly strict?: boolean;
  readonly sarif?: boolean;
  readonly json?: boolean;
}

const HELP = `
Without --config and --nats it looks at this project: its settings and, where NATS_URL is set, its queues, its store, clocks,
rights, secrets, and whether dispatch and reconcile live. It changes nothing.
Files may be what nats stream info --json and nats consumer info --json print, bare configurations, or one object with
"stream", "consumer", "application" and "server": docs/doctor.md lists what an application can say of itself.
--nats connects with NATS_CREDS, or NATS_USER and NATS_PASSWORD.
Ends with 0 when nothing is wrong, 1 for an error (with --strict for a warning too), 2 when used wrongly.

Examples:
  pawl doctor
  pawl doctor --config stream.json consumer.json
  nats consumer info ORDERS work --json | pawl doctor --config -
  pawl doctor --nats nats://127.0.0.1:4222 --stream ORDERS
  pawl doctor --config queue.json --sarif > doctor.sarif`;

export function addDoctor(program: Command, version: string): void {
  program
    .command("doctor")
    .description("look for what can lose work or do it twice in how queues are set up and used")
    .option("--config <file...>", "streams and consumers as JSON, and what uses them; - for standard input")
    .option("--nats <url>", "a server to ask")
    .option("--stream <name>", "with --nats: its stream")
    .option("--consumer <name>", "with --nats: one of the stream's consumers; all by default")
    .option("--monitor <url>", "the monitoring address of NATS, for its sync_interval")
    .option(
      "--creds <folder>",
      `where pawl creds wrote the identities, to compare what each may do (${FOLDER})`,
    )
    .option("--rules", "list what is looked for")
    .option("--strict", "a warning is an error")
    .option("--sarif", "answer in SARIF, for code scanning")
    .option("--json", "answer in JSON")
    .addHelpText("after", HELP)
    // Said below, with what was meant.
    .allowExcessArguments()
    .action(async (options: Options, command: Command) => {
      checkUse(options, command);
      if (options.rules) return sayRules(allRules, options);
      const sources = await Promise.all((options.config ?? []).map(sourceOf));
      const examined = await examinedOf(options, sources);
      if (options.sarif) sayJson(sarif(examined.findings, allRules, sources, version));
      else if (options.json) sayJson(examined);
      else for (const line of saidLines(examined, allRules)) say(line);
      const isBad = examined.findings.some(({ severity }) => options.strict || severity === "error");
      if (isBad) process.exitCode = 1;
    });
}

function checkUse(options: Options, command: Command): void {
  const { nats, stream, config } = options;
  const { args } = command;
  if (args.length > 0)
    command.error(`doctor takes files by --config. Did you mean pawl doctor --config ${args.join(" ")}?`);
  for (const name of ["stream", "consumer"] as const)
    if (options[name] !== undefined && nats === undefined) command.error(`--${name} needs --nats`);
  if (nats !== undefined && stream === undefined) command.error("--nats needs --stream");
  if (options.json && options.sarif) command.error("--json and --sarif exclude each other");
  if (options.creds !== undefined && (nats !== undefined || config !== undefined))
    command.error("--creds is for this project's own deployment, which --nats and --config are not");
  if (config !== undefined && options.monitor !== undefined && nats === undefined)
    command.error("--monitor is for a server, and --config alone asks none");
}

async function examinedOf(options: Options, sources: readonly Source[]): Promise<Examined> {
  const { nats: url, stream, consumer, monitor } = options;
  if (url === undefined && sources.length === 0) {
    const { gather } = await import("../../doctor/live/gather.ts");
    const creds = resolve(options.creds ?? FOLDER);
    const place = { env: process.env, agents: agentsFolder(), creds, ...(monitor && { monitor }) };
    return examineLive(await gather(place));
  }
  const parts = partsIn(sources);
  const named = url !== undefined && stream !== undefined;
  // The client of NATS takes a moment to load, and a file needs none.
  const contracts = named
    ? await (await import("../../doctor/by-name.ts")).byName(
        { url, stream, ...(consumer && { consumer }), ...(monitor && { monitor }) },
        parts,
        process.env,
      )
    : contractsOf(parts);
  return {
    findings: contracts.flatMap(examine),
    examined: contracts.map(({ name }) => name),
    unseen: [...new Set(contracts.flatMap(unsaid))],
  };
}

async function sourceOf(file: string): Promise<Source> {
  if (file === "-") return { file: "standard input", text: await text(process.stdin) };
  try {
    return { file, text: await readFile(file, "utf8") };
  } catch (error) {
    throw new PawlError("usage", `--config ${file} can't be read: ${messageOf(error)}`);
  }
}

function sayRules(rules: Readonly<Record<string, RuleText>>, { json }: Options): void {
  if (!json) for (const line of ruleLines(rules)) say(line);
  else
    sayJson(
      Object.entries(rules).map(([id, { checks, prevents, severity, mend }]) => ({
        id,
        checks,
        prevents,
        severity,
        mend,
      })),
    );
}
