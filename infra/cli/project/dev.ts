import { relative } from "node:path";
import type { Command } from "commander";
import { messageOf } from "../../../shared/errors/errors.ts";
import { parseDuration } from "../../../shared/values/duration.ts";
import { agentsFolder } from "../../agents.ts";
import type { DevStack } from "../../local/dev/dev.ts";
import { printable, say, sayJson } from "../output.ts";
import { type FirstTask, firstTask, submitFirst } from "./first-task.ts";

interface Options {
  readonly cronEvery: string;
  readonly fresh?: boolean;
  readonly submit?: string;
  readonly json?: boolean;
}

export function addDev(program: Command): void {
  program
    .command("dev")
    .description("run everything on this machine: servers, and every function in workerd")
    .option("--cron-every <duration>", "how often cron fires", "1m")
    .option("--fresh", "begin with empty stores; else tasks are as the last dev left them")
    .option("--submit <agent=input>", "once it runs, submit this task, and say how it ended")
    .option("--json", "one JSON object a line: first the ready line, then log lines")
    .addHelpText(
      "after",
      `
Functions get [vars] of wrangler.toml, .dev.vars and, over both, the shell's variables of the same names and Pawl's
settings. What changes is rebuilt; agents may come and go. Ctrl-C stops everything, and the next dev goes on from there.
Example:
  npx pawl dev --submit echo='{"text": "hello"}'
  npx pawl dev --cron-every 10s`,
    )
    .action(async (options: Options, command: Command) => {
      const json = options.json ?? false;
      const cronEvery = parseDuration(options.cronEvery);
      if (!cronEvery) command.error(`--cron-every ${options.cronEvery} is not a duration; write it like 1m`);
      const agents = agentsFolder();
      const task = options.submit === undefined ? undefined : await firstTask(options.submit, agents);
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
        project: projectIn(process.cwd(), agents),
        shell: process.env,
        cronEvery,
        fresh: options.fresh ?? false,
        tell,
        hear: (line) => (json ? sayJson(asJson(line)) : say(asText(line))),
      });
      if (json) sayJson({ ready: true, urls: stack.urls, env: stack.env, envFile: stack.envFile });
      else greet(stack, Object.keys(stack.urls));
      const stop = new AbortController();
      const first = task && sayFirst(task, stack, stop.signal, json);
      const why = await Promise.race([ended, stack.failed]);
      stop.abort();
      await first;
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

/** Its task may well fail: dev goes on, and says so. */
async function sayFirst(
  task: FirstTask,
  { env }: DevStack,
  signal: AbortSignal,
  json: boolean,
): Promise<void> {
  const { agent } = task;
  if (!json) say(`submitted a task of ${agent}`);
  try {
    const done = await submitFirst(task, env, signal);
    if (!done) return;
    const { id, state } = done;
    const outcome = done.state === "completed" ? done.result : done.state === "failed" ? done.error : null;
    if (json) sayJson({ event: "task", agent, id, state, outcome });
    else {
      say(`${agent} ${state}: ${JSON.stringify(outcome)}`);
      say(`  how it came there: npx pawl events ${id}    stop everything: Ctrl-C`);
    }
  } catch (error) {
    const message = `the task of ${agent} was lost sight of: ${messageOf(error)}`;
    if (json) sayJson({ event: "dev", message });
    else say(`! ${message}`);
  }
}

/** Names of agents may be longer than the column. */
const column = (name: string) => `${name.padEnd(15)} `;

function greet({ urls, envFile }: DevStack, agents: readonly string[]): void {
  say("ready:");
  for (const [name, url] of Object.entries(urls))
    say(`  ${column(name)}${url}${name === "api" ? "/ui" : ""}`);
  say("In another terminal:");
  say(`  . ${relative(process.cwd(), envFile) || envFile}`);
  say(`  npx pawl ${agents.includes("echo") ? `submit echo '{"text": "hello"}'` : "agents"}`);
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
