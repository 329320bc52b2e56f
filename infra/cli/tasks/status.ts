import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { Altered, PawlError } from "../../../shared/errors/errors.ts";
import { lost } from "../../../shared/journal/budget.ts";
import type { Cost } from "../../../shared/journal/cost.ts";
import type { Entry, Head } from "../../../shared/journal/entries.ts";
import { readJournal } from "../../../shared/journal/journal.ts";
import { type Pause, pauseOf } from "../../../shared/pause/pause.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import type { Stored } from "../../../shared/ports/store.ts";
import type { HistoryEntry, InDoubt, Task, TaskFailure, Waiting } from "../../../shared/task/document.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { signalParts } from "../../../shared/task/signals.ts";
import { isFinal } from "../../../shared/task/table.ts";
import { dollars } from "../../../shared/values/dollars.ts";
import { readTraceparent } from "../../../shared/values/traceparent.ts";
import { COLUMN, linesOf, logger, oneLine, say, sayJson } from "../output.ts";
import { entryLines } from "./entry-lines.ts";

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
      const { task, altered } = await taskAsItIs(deps, id);
      const journal = altered === undefined ? await journalOf(deps, task) : undefined;
      // Whoever asks why a task does not begin, or go on.
      const paused = isFinal(task) ? undefined : await pauseOf(deps.store, task.agent);
      const trace = readTraceparent(deps.trace?.traceparent(task))?.traceId;
      if (options.json)
        sayJson({ ...task, journal: journal && journalFacts(journal), altered, paused, trace });
      else {
        if (altered !== undefined) say(`NOT AS PAWL WROTE IT: ${altered}`);
        if (paused) say(`AGENT PAUSED ${pauseText(paused)} (pawl resume ${task.agent})`);
        for (const line of [...lines(task), ...(journal ? journalLines(journal) : [])]) say(line);
        if (trace !== undefined) say(`trace       ${trace}`);
      }
      if (altered !== undefined) process.exitCode = 1;
    });
}

/** Also one that another hand changed, with what shows it: somebody has to look at it. */
async function taskAsItIs(deps: Deps, id: string): Promise<{ task: Task; altered?: string }> {
  try {
    return { task: await taskNamed(deps, id) };
  } catch (error) {
    if (!(error instanceof Altered)) throw error;
    return { task: (error.found as Stored).task, altered: error.message };
  }
}

export async function taskNamed(deps: Deps, id: string): Promise<Task> {
  const found = await deps.store.get(id);
  if (found) return found.task;
  const where = `namespace ${deps.settings.namespace} of ${deps.store.name}`;
  throw new PawlError("task_unknown", `No task ${id} in ${where}`);
}

interface Journal {
  readonly head: Head;
  readonly entries: readonly Entry[];
}

/** None of another task that had the id before, nor of before a redrive from scratch. */
export async function journalOf(deps: Deps, { id, createdAt, epoch }: Task): Promise<Journal | undefined> {
  const found = await readJournal(deps, id, () => {});
  return found?.head.born === createdAt && found.head.epoch === epoch ? found : undefined;
}

/** A journal for machines. */
export function journalFacts({ head, entries }: Journal) {
  return { ...head, lost: lost(entries) };
}

/** What it waits for, each with the command that answers it, and what the task says of it. */
function waitingText({ id, waitingFor, summary }: Waiting): string {
  const asked = waitingFor.map((signal) => {
    const { kind, name } = signalParts(signal);
    const command = { approval: "approve|reject", event: "signal" };
    const how = kind === "child" ? `status ${word(name)}` : `${command[kind]} ${word(id)} ${word(name)}`;
    return `${kind === "event" ? name : `${kind} ${name}`} (pawl ${how})`;
  });
  return [...asked, ...(summary ? [summary.slice(0, SUMMARY_SHOWN)] : [])].join("\n");
}

const SUMMARY_SHOWN = 1_000;

/** As a shell takes it for one argument. */
function word(text: string): string {
  const quoted = /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  return text.startsWith("-") ? `-- ${quoted}` : quoted;
}

function doubtLine({ id, effect }: InDoubt): string {
  return `effect ${effect}: find out whether it happened, then pawl resolve ${id} --happened|--did-not|--fail`;
}

/** What was done, what it cost, and what the journal saved. */
export function journalLines({ head, entries }: Journal): string[] {
  const money = ({ turns, inputTokens, outputTokens, usd }: Cost) =>
    `${turns} turns, ${inputTokens} + ${outputTokens} tokens, ${dollars(usd)}`;
  const costs: [string, Cost, string][] = [
    ["spent", head.spent, ""],
    ["re-spent", lost(entries), " at most: asked for, and the answer lost"],
    ["saved", head.saved, " by the journal: not asked for again"],
  ];
  const shown = costs.filter(([, cost]) => cost.turns > 0);
  const listed = entries.slice(-SHOWN).flatMap(entryLines);
  const more = entries.length > SHOWN ? `, the last ${SHOWN}` : "";
  return [
    ...shown.map(([name, cost, note]) => `${name.padEnd(11)} ${money(cost)}${note}`),
    `journal     ${entries.length} entries${more}`,
    ...listed,
  ];
}

const SHOWN = 30;

export const time = (at: number) => new Date(at).toISOString();

/** "since 2026-11-19T10:00:00.000Z by jo via cli: the board is down" */
export function pauseText({ at, by, why }: Pause): string {
  return `since ${time(at)} by ${by}${why === undefined ? "" : `: ${oneLine(why)}`}`;
}

export function short(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 500 ? `${text.slice(0, 500)}… (--json shows all)` : text;
}

/** A name and a value in each line; what has no value is left out, and what has several lines stays in its column. */
export function fieldLines(rows: readonly (readonly [string, string | undefined])[]): string[] {
  return rows.flatMap(([name, value]) => {
    const texts = value === undefined ? [] : linesOf(value);
    return texts.map((text, i) => `${(i === 0 ? name : "").padEnd(COLUMN - 1)} ${text}`.trimEnd());
  });
}

export function historyLine({ at, event, state, fence, by, note, error }: HistoryEntry): string {
  const why = error && [error.code, error.message, error.where].filter(Boolean).join(" ");
  const more = [note, why].filter(Boolean).map((one) => `  ${oneLine(one as string)}`);
  return `${time(at)}  ${event.padEnd(16)} ${state.padEnd(10)} fence ${fence}  ${by}${more.join("")}`;
}

function lines(task: Task): string[] {
  const fields = fieldLines([
    ["task", task.id],
    ["agent", `${task.agent}, lane ${task.lane}`],
    ["state", task.state],
    [
      "runner",
      task.state === "running" ? `${task.runner}${task.started ? "" : " (waiting for its turn)"}` : undefined,
    ],
    ["waits for", task.state === "waiting" ? waitingText(task) : undefined],
    ["in doubt", task.state === "in_doubt" ? doubtLine(task) : undefined],
    ["due", "dueAt" in task && task.dueAt !== undefined ? time(task.dueAt) : undefined],
    ["fence", String(task.fence)],
    ["counts", `starts ${task.executions}, failures ${task.attempts}, dispatches ${task.dispatches}`],
    ["input", short(task.input)],
    ["result", task.state === "completed" ? short(task.result) : undefined],
  ]);
  const error = fieldLines([
    [
      "error",
      task.state === "failed" ? `${task.error.code} (${task.error.phase}): ${task.error.message}` : undefined,
    ],
  ]);
  const lastError = fieldLines([
    ["last error", task.lastError && `${task.lastError.code}: ${task.lastError.message}`],
  ]);
  const more = fieldLines([
    [
      "raw",
      task.state === "failed" && task.raw ? `${task.raw.bytes} bytes on ${task.raw.subject}` : undefined,
    ],
    ["settled", task.settled.map((one) => `${one.queue}#${one.seq} ${one.outcome}`).join(", ") || "none"],
  ]);
  return [
    ...fields,
    ...error,
    ...stackLines(task.state === "failed" ? task.error : undefined),
    ...lastError,
    ...stackLines(task.lastError),
    ...more,
    "history",
    ...task.history.map((entry) => `  ${historyLine(entry)}`),
  ];
}

/** A line for each: what is said as one line would have its ends made visible. */
export function stackLines(error: TaskFailure | undefined): string[] {
  const lines = error?.stack?.split("\n") ?? [];
  return lines.filter((line) => line.trim() !== "").map((line) => `  ${line.trim()}`);
}
