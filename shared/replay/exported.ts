import { messageOf, PawlError } from "../errors/errors.ts";
import { type Entry, type Kept, known } from "../journal/entries.ts";
import { readJournal } from "../journal/journal.ts";
import { getPart } from "../journal/parts.ts";
import type { Deps } from "../ports/deps.ts";
import type { Guard } from "../retry/guards.ts";
import type { Millis, Redriven, Signal, State, Task, TaskFailure } from "../task/document.ts";
import { checkAgentName, checkTaskId } from "../task/names.ts";
import { states } from "../task/table.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../values/json.ts";

/** What is kept of a task: all that its handler can see of it, and nothing that gives a right to anything. */
export interface ExportedTask {
  readonly id: string;
  readonly agent: string;
  readonly state: State;
  readonly input: JsonObject;
  readonly attempts: number;
  readonly epoch: number;
  readonly createdAt: Millis;
  readonly signals: readonly Signal[];
  readonly redriven?: Redriven;
  /** Of a completed one. */
  readonly result?: Json;
  /** Of a failed one. */
  readonly error?: Pick<TaskFailure, "code" | "message" | "phase">;
}

/** A task's journal as a file: with its large values, on its own. */
export interface ExportedJournal {
  readonly pawl: "journal";
  readonly v: 1;
  /** When it was taken: a replay's clock stands still there. */
  readonly at: Millis;
  /** The agent's version when the journal began. */
  readonly version: number;
  /** What was taken out of it: `input`, or parts of that. */
  readonly redacted?: readonly string[];
  readonly task: ExportedTask;
  readonly entries: readonly Entry[];
}

/** A task's journal as it is now. Nothing is opened or written: its holder, if there is one, goes on. */
export async function exportJournal(
  deps: Deps,
  task: Task,
  guard: Guard = () => {},
): Promise<ExportedJournal> {
  const { id, agent, state, input, attempts, epoch, createdAt, signals, redriven } = task;
  const found = await readJournal(deps, id, guard);
  const own = found?.head.born === createdAt && found.head.epoch === epoch ? found : undefined;
  const entries: Entry[] = [];
  for (const entry of own?.entries ?? []) entries.push(await whole(deps, id, entry, guard));
  return {
    pawl: "journal",
    v: 1,
    at: deps.clock.now(),
    version: own?.head.version ?? 1,
    task: {
      ...{ id, agent, state, input, attempts, epoch, createdAt, signals },
      ...(redriven && { redriven }),
      ...(task.state === "completed" && { result: task.result }),
      ...(task.state === "failed" && { error: failureOf(task.error) }),
    },
    entries,
  };
}

const failureOf = ({ code, message, phase }: TaskFailure) => ({ code, message, phase });

/** With its value in it, however large. */
async function whole(deps: Deps, id: string, entry: Entry, guard: Guard): Promise<Entry> {
  const { parts, ...rest } = entry as Entry & Kept;
  if (!parts) return entry;
  const texts: string[] = [];
  for (const name of parts) texts.push(await getPart(deps, id, name, guard));
  return { ...rest, value: JSON.parse(texts.join("")) as Json } as Entry;
}

export function writeExported(journal: ExportedJournal): string {
  return `${JSON.stringify(journal, undefined, 2)}\n`;
}

const KINDS: Readonly<Record<Entry["kind"], true>> = {
  step: true,
  intent: true,
  receipt: true,
  undone: true,
  unsure: true,
  redriven: true,
};

/** A file that anybody may have written, or changed: as far as a replay relies on it. */
export function readExported(text: string, where: string): ExportedJournal {
  const wrong = (why: string) =>
    new PawlError("input_invalid", `${where}: ${why}. pawl journal export <task> writes such files`);
  const file = parseJson(text, where);
  if (!isJsonObject(file) || file.pawl !== "journal") throw wrong("it is no journal of Pawl's");
  if (file.v !== 1) throw wrong(`its form is ${JSON.stringify(file.v)}; this version of Pawl reads 1`);
  const { task, entries, at, version } = file;
  if (!isJsonObject(task) || !Array.isArray(entries) || !isCount(at) || !isCount(version))
    throw wrong("it needs a task, entries, at and version");
  checkTaskId(String(task.id));
  checkAgentName(String(task.agent));
  const isTask =
    isJsonObject(task.input) &&
    (states as readonly unknown[]).includes(task.state) &&
    [task.attempts, task.epoch, task.createdAt].every(isCount) &&
    Array.isArray(task.signals) &&
    task.signals.every((one) => isJsonObject(one) && typeof one.name === "string");
  if (!isTask) throw wrong("its task is not whole");
  const odd = entries.findIndex(
    (one) => !isJsonObject(one) || !(String(one.kind) in KINDS) || typeof one.key !== "string",
  );
  if (odd >= 0) throw wrong(`entry ${odd + 1} is none`);
  const journal = file as unknown as ExportedJournal;
  try {
    known(journal.entries);
  } catch (error) {
    throw wrong(messageOf(error));
  }
  return journal;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
