import { watch } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { parseDuration } from "../../../shared/values/duration.ts";
import { agentsFolder } from "../../agents.ts";
import { ROOT } from "../../build/targets.ts";
import type { DevStack } from "../../local/dev.ts";
import { printable, say, sayJson } from "../output.ts";

export function addDev(program: Command): void {
  program
    .command("dev")
    .description("run everything on this machine: servers, and every function in workerd")
    .option("--cron-every <duration>", "how often cron fires", "1m")
    .option("--json", "one JSON object a line: first the ready line, then log lines")
    .addHelpText(
      "after",
      "\nStarts over when a file changes. Ctrl-C stops everything.\nExample:\n  npm run dev",
    )
    .action(async (options: { cronEvery: string; json?: boolean }, command: Command) => {
      const json = options.json ?? false;
      const cronEvery = parseDuration(options.cronEvery);
      if (!cronEvery) command.error(`--cron-every ${options.cronEvery} is not a duration; write it like 1m`);
      const tell = (line: string) => (json ? sayJson({ event: "dev", message: line }) : say(line));
      const ended = new Promise((resolve) => {
        process.once("SIGINT", resolve);
        process.once("SIGTERM", resolve);
      });
      // Takes a second to load, which no other command should.
      const { startDev } = await import("../../local/dev.ts");
      await using stack = await startDev(agentsFolder(), cronEvery, tell, (line) =>
        json ? sayJson(asJson(line)) : say(asText(line)),
      );
      if (json) sayJson({ ready: true, urls: stack.urls, env: stack.env });
      else greet(stack);
      using _ = watching([agentsFolder(), join(ROOT, "shared"), join(ROOT, "functions")], () =>
        stack.rebuild(),
      );
      await ended;
    });
}

function greet({ urls, env }: DevStack): void {
  say(
    `ready: ${Object.entries(urls)
      .map(([name, url]) => `${name} ${url}`)
      .join("  ")}`,
  );
  say("In another terminal:");
  say(
    `  export ${Object.entries(env)
      .map(([name, value]) => `${name}='${value}'`)
      .join(" ")}`,
  );
  say(`  npx pawl submit echo '{"text": "hello"}'`);
}

/** Calls back once things are quiet again: an editor writes a file in several goes. */
function watching(folders: readonly string[], changed: () => void): Disposable {
  let timer: NodeJS.Timeout | undefined;
  const watchers = folders.map((folder) =>
    watch(folder, { recursive: true }, (_, file) => {
      if (!file?.endsWith(".ts")) return;
      clearTimeout(timer);
      timer = setTimeout(changed, 100);
    }),
  );
  return {
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
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
  return printable([`${String(name).padEnd(12)}${level}${message ?? event}`, ...shown].join(" "));
}
