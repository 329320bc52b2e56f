import type { Command } from "commander";
import type { Config } from "../../functions/config.ts";
import { wire } from "../../functions/wire.node.ts";
import type { Task } from "../../shared/task/document.ts";
import { PawlError } from "../../shared/task/errors.ts";
import { checkTaskId } from "../../shared/task/names.ts";
import { logger, say, sayJson } from "./output.ts";

export function addStatus(program: Command, config: () => Config): void {
  program
    .command("status")
    .description("show one task: its state, and how it came there")
    .argument("<id>", "the task's id")
    .option("--json", "the whole document in JSON")
    .addHelpText("after", "\nExample:\n  pawl status hello-1")
    .action(async (id: string, options: { json?: boolean }) => {
      checkTaskId(id);
      await using deps = await wire(config(), logger(options.json ?? false));
      const found = await deps.store.get(id);
      if (!found) {
        const where = `namespace ${deps.settings.namespace} of ${deps.store.name}`;
        throw new PawlError("task_unknown", `No task ${id} in ${where}`);
      }
      if (options.json) sayJson(found.task);
      else for (const line of lines(found.task)) say(line);
    });
}

function lines(task: Task): string[] {
  const time = (at: number) => new Date(at).toISOString();
  const short = (value: unknown) => {
    const text = JSON.stringify(value);
    return text.length > 500 ? `${text.slice(0, 500)}… (--json shows all)` : text;
  };
  const rows: [string, string | undefined][] = [
    ["task", task.id],
    ["agent", `${task.agent}, lane ${task.lane}`],
    ["state", task.state],
    [
      "runner",
      task.state === "running" ? `${task.runner}${task.started ? "" : " (waiting for its turn)"}` : undefined,
    ],
    ["due", "dueAt" in task && task.dueAt !== undefined ? time(task.dueAt) : undefined],
    ["fence", String(task.fence)],
    ["counts", `executions ${task.executions}, failures ${task.attempts}, dispatches ${task.dispatches}`],
    ["input", short(task.input)],
    ["result", task.state === "completed" ? short(task.result) : undefined],
    [
      "error",
      task.state === "failed"
        ? `${task.error.code} (${task.error.phase}): ${task.error.message}${task.error.stack ?? ""}`
        : undefined,
    ],
    [
      "last error",
      task.lastError && `${task.lastError.code}: ${task.lastError.message}${task.lastError.stack ?? ""}`,
    ],
    [
      "raw",
      task.state === "failed" && task.raw ? `${task.raw.bytes} bytes on ${task.raw.subject}` : undefined,
    ],
    ["settled", task.settled.map((one) => `${one.queue}#${one.seq} ${one.outcome}`).join(", ") || "none"],
  ];
  const fields = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name.padEnd(11)} ${value}`],
  );
  const history = task.history.map(
    ({ at, event, state, fence, by, note }) =>
      `  ${time(at)}  ${event.padEnd(16)} ${state.padEnd(10)} fence ${fence}  ${by}${note ? `  ${note}` : ""}`,
  );
  return [...fields, "history", ...history];
}
