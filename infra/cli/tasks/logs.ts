import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { joined, type LogLine } from "../../../shared/journal/logs.ts";
import { newestOf } from "../../../shared/journal/newest.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { logger, say, sayJson, sayLines } from "../output.ts";
import { taskNamed, time } from "./status.ts";

export function addLogs(program: Command, config: () => Config): void {
  program
    .command("logs")
    .description("show what a task's handlers logged: the newest 100 lines, or 16 KiB")
    .argument("<id>", "the task's id")
    .option("--json", "one JSON object a line: at, fence, level, text")
    .addHelpText("after", "\nExample:\n  pawl logs hello-1")
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      checkTaskId(id);
      await using deps = await wire(config(), logger(json));
      const task = await taskNamed(deps, id);
      const journal = await newestOf(deps.store, task);
      const { lines = [], count = 0 } = joined(task.logs, journal?.head.logs) ?? {};
      if (json) {
        for (const { level = "info", ...line } of lines) sayJson({ ...line, level });
        return;
      }
      if (count > lines.length) say(`(${count - lines.length} older lines made room)`);
      for (const line of lines) sayLines(logLine(line));
    });
}

function logLine({ at, fence, level = "info", text }: LogLine): string {
  return `${time(at)}  fence ${fence}  ${level === "info" ? "" : `${level.toUpperCase()} `}${text}`;
}
