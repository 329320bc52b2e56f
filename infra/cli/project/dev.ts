import { relative } from "node:path";
import type { Command } from "commander";
import { parseDuration } from "../../../shared/values/duration.ts";
import { agentsFolder } from "../../agents.ts";
import type { DevStack } from "../../local/dev/dev.ts";
import { printable, say, sayJson } from "../output.ts";

interface Options {
  readonly cronEvery: string;
  readonly fresh?: boolean;
  readonly json?: boolean;
}

export function addDev(program: Command): void {
  program
    .command("dev")
    .description("run everything on this machine: servers, and every function in workerd")
    .option("--cron-every <duration>", "how often cron fires", "1m")
    .option("--fresh", "begin with empty stores; else tasks are as the last dev left them")
    .option("--json", "one JSON object a line: first the ready line, then log lines")
    .addHelpText(
      "after",
      `
Functions get [vars] of wrangler.toml, .dev.vars and, over both, the shell's variables of the same names and Pawl's
settings. What changes is rebuilt; agents may come and go. Ctrl-C stops everything, and the next dev goes on from there.
Example:
  npm run dev -- --cron-every 10s`,
    )
    .action(async (options: Options, command: Command) => {
      const json = options.json ?? false;
      const cronEvery = parseDuration(options.cronEvery);
      if (!cronEvery) command.error(`--cron-every ${options.cronEvery} is not a duration; write it like 1m`);
      const sayLines = (lines: string) => {
        for (const line of lines.split("\n")) say(line);
      };
      const tell = (line: string) => (json ? sayJson({ event: "dev", message: line }) : sayLines(line));
      const ended = untilStopped();
      // Takes a second to load, which no other command should.
      const [{ startDev }, { projectIn }] = await Promise.all([
        import("../../local/dev/dev.ts"),
        import("../../local/dev/project.ts"),
      ]);
      await using stack = await startDev({
        project: projectIn(process.cwd(), agentsFolder()),
        shell: process.env,
        cronEvery,
        fresh: options.fresh ?? false,
        tell,
        hear: (line) => (json ? sayJson(asJson(line)) : say(asText(line))),
      });
      if (json) sayJson({ ready: true, urls: stack.urls, env: stack.env, envFile: stack.envFile });
      else greet(stack);
      const why = await Promise.race([ended, stack.failed]);
      if (why === undefined) return;
      tell(`! ${why}`);
      process.exitCode = 1;
    });
}

/** By a signal. By a second one, whatever is under way ends at once: what was started does not outlive this process. */
function untilStopped(): Promise<undefined> {
  return new Promise((resolve) => {
    let isStopped = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => {
        if (isStopped) process.exit(130);
        isStopped = true;
        resolve(undefined);
      });
  });
}

/** Names of agents may be longer than the column. */
const column = (name: string) => `${name.padEnd(15)} `;

function greet({ urls, envFile }: DevStack): void {
  say("ready:");
  for (const [name, url] of Object.entries(urls))
    say(`  ${column(name)}${url}${name === "api" ? "/ui" : ""}`);
  say("In another terminal:");
  say(`  . ${relative(process.cwd(), envFile) || envFile}`);
  say(`  npx pawl submit echo '{"text": "hello"}'`);
}

/** A function's log line, or whatever else workerd printed. */
function asJson(line: string): object {
  try {
    return JSON.parse(line) as object;
  } catch {
    return { event: "workerd", message: line };
  }
}

function asText(line: string): string {
  const {
    severity,
    event,
    function: name = "workerd",
    message,
    ...fields
  } = asJson(line) as Record<string, unknown>;
  const shown = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const level = severity === undefined || severity === "INFO" ? "" : `${String(severity)} `;
  return printable([`${column(String(name))}${level}${message ?? event}`, ...shown].join(" "));
}
