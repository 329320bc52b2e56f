import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { type Followed, follow } from "../../../shared/dispatch/follow.ts";
import type { Entry, Range } from "../../../shared/journal/entries.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { dollars } from "../../../shared/values/dollars.ts";
import { sayDuration } from "../../../shared/values/duration.ts";
import { logger, sayJson, sayLines } from "../output.ts";
import { historyLine } from "./status.ts";

interface Options {
  readonly follow?: boolean;
  readonly json?: boolean;
}

export function addEvents(program: Command, config: () => Config): void {
  program
    .command("events")
    .description("show what happened to a task: its transitions, and what its journal keeps")
    .argument("<id>", "the task's id")
    .option("--follow", "go on as it happens, until the task is over or Ctrl-C")
    .option("--json", "one JSON object a line: kind, id, data")
    .addHelpText("after", "\nExample:\n  pawl events hello-1 --follow")
    .action(async (id: string, { follow: goOn = false, json = false }: Options) => {
      checkTaskId(id);
      await using deps = await wire(config(), logger(json));
      const stop = new AbortController();
      const end = () => stop.abort();
      process.once("SIGINT", end);
      process.once("SIGTERM", end);
      // A reader that has seen enough, such as head, is no mistake.
      process.stdout.on("error", end);
      for await (const event of follow(deps, id, stop.signal)) {
        if (json) sayJson(event);
        else sayLines(eventLine(event));
        // All that there is comes before the first pause, which an aborted signal ends.
        if (!goOn) end();
      }
    });
}

function eventLine(event: Followed): string {
  switch (event.kind) {
    case "transition":
      return `transition  ${historyLine(event.data)}`;
    case "journal":
      return `journal     ${String(event.data.n).padStart(4)}  ${event.data.kind.padEnd(8)} ${event.data.key}${detail(event.data)}`;
    case "end":
      return `end         ${event.data.state}`;
    default:
      return event satisfies never;
  }
}

const SHOWN = 200;

/** Entries by the numbers that their lines have. */
function forgotten(forgets: readonly Range[]): string {
  const ranges = forgets.map(([first, last]) =>
    first === last ? `${first + 1}` : `${first + 1}-${last + 1}`,
  );
  return ranges.length === 0 ? "forgets nothing" : `forgets ${ranges.join(", ")}`.slice(0, SHOWN);
}

/** What an entry says beside its key. */
function detail(entry: Entry): string {
  const says: (string | undefined)[] = [];
  if (entry.kind === "intent") {
    const until = entry.until === undefined ? "" : ` until ${new Date(entry.until).toISOString()}`;
    says.push(`${entry.of}${until}`);
  }
  if (entry.kind === "undone" || entry.kind === "unsure") says.push(entry.why.slice(0, SHOWN));
  if (entry.kind === "redriven") says.push(forgotten(entry.forgets));
  if (entry.kind === "receipt" && entry.cost) says.push(dollars(entry.cost.usd));
  if ("parts" in entry && entry.parts) says.push("(a large value)");
  if ("value" in entry) says.push(short(JSON.stringify(entry.value) ?? ""));
  if ("took" in entry && entry.took !== undefined) says.push(sayDuration(entry.took));
  // Mostly of several lines, so nothing of another kind comes after it.
  if ("asked" in entry && entry.asked) says.push(`asked ${short(entry.asked.text ?? "(not kept)")}`);
  return says.map((one) => `  ${one}`).join("");
}

function short(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}… (--json shows all)` : text;
}
