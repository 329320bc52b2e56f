import { uniqueToken } from "../../ports/deps.ts";
import type { Task } from "../../task/document.ts";
import type { Account } from "../account.ts";
import { COUNTED, type Counted } from "../figures/counted.ts";
import type { Finding } from "../findings/findings.ts";
import type { Pace } from "../pace.ts";
import { type OpenTask, OpenTaskIndex, openTaskLine, openTaskOf, pieces, readOpenTask } from "./open-task.ts";
import { hashOf } from "./remembered.ts";
import { type OpenTasks, openPrefix, readReportList } from "./reports.ts";
import { readText } from "./texts.ts";

/** Below what a text may have. */
const PART_CHARS = 250_000;

/** What is not over, dead letters, which somebody may redrive, what ended only just now, and what no sequence tells of. */
export function leaveOpen(account: Account, task: Task, counted: Counted): void {
  leaveAsBefore(account, openTaskOf(task, numbersOf(counted)));
}

/** As it was the last time: nobody can say what became of it. */
export function leaveAsBefore({ plan, open }: Account, carried: OpenTask): void {
  // A look back keeps nothing.
  if (plan.isBack) return;
  const line = openTaskLine(carried);
  open.lines.push(line);
  open.chars += line.length + 1;
  open.count++;
}

/** Dollars as whole billionths: a line has no fractions. */
const BILLION = 1_000_000_000;

function numbersOf(counted: Counted): number[] {
  return COUNTED.map((name) => Math.round(counted[name] * (name.endsWith("Usd") ? BILLION : 1)));
}

/** What the last report had counted of a task. */
export function countedBefore({ numbers }: OpenTask): Counted {
  const read = COUNTED.map((name, i) => [name, (numbers[i] ?? 0) / (name.endsWith("Usd") ? BILLION : 1)]);
  return Object.fromEntries(read) as Counted;
}

/**
 * Stores full parts of what is left open; all of it at the end. A part is named by what it holds, so that two
 * reconciliations of one plan write no part of each other's.
 */
export async function storeOpen({ deps }: Pace, { plan, open }: Account, isEnd = false): Promise<void> {
  while (open.chars > PART_CHARS || (isEnd && open.lines.length > 0)) {
    const text = firstLines(open.lines);
    const name = await partName(plan.run, text);
    await deps.store.putText(name, text);
    open.parts.push(name);
    const taken = text.split("\n").length;
    open.lines = open.lines.slice(taken);
    open.chars = open.lines.reduce((sum, line) => sum + line.length + 1, 0);
  }
}

function firstLines(lines: readonly string[]): string {
  let chars = 0;
  const end = lines.findIndex((line) => {
    chars += line.length + 1;
    return chars > PART_CHARS;
  });
  return lines.slice(0, end < 0 ? lines.length : Math.max(1, end)).join("\n");
}

async function partName(run: string, text: string): Promise<string> {
  return `${openPrefix(run)}${uniqueToken()}-${hashOf(text)}`;
}

/** The lines of a part; or why nobody can read them. */
export async function readPart({ deps }: Pace, name: string): Promise<readonly string[] | string> {
  const text = await readText(deps.store, name);
  if (text === undefined) return "a part of it is gone";
  return name.endsWith(hashOf(text)) ? text.split("\n") : "a part of it was changed";
}

/** So many parts are read at once. */
const AT_ONCE = 8;

/** What the last report left open, by id. */
export async function openBefore(
  pace: Pace,
  open: OpenTasks | undefined,
): Promise<OpenTaskIndex | undefined> {
  if (!open) return undefined;
  const index = new OpenTaskIndex(open.run, open.count);
  for (let i = 0; i < open.parts.length; i += AT_ONCE) {
    const names = open.parts.slice(i, i + AT_ONCE);
    for (const lines of await Promise.all(names.map((name) => readPart(pace, name))))
      if (typeof lines !== "string") for (const line of lines) index.add(line);
  }
  return index;
}

/**
 * A piece of what the last report left open: the tasks of a part. None where another reconciliation has made its report
 * since: it has looked at them, and removed the part.
 */
export async function openLines(
  pace: Pace,
  { parts, run }: OpenTasks,
  part: number,
): Promise<{ readonly tasks: readonly OpenTask[] } | { readonly finding: Finding }> {
  const lines = await readPart(pace, parts[part] as string);
  if (typeof lines !== "string") return { tasks: lines.flatMap((line) => readOpenTask(line) ?? []) };
  const { open } = await readReportList(pace.deps.store);
  if (open?.run !== run) return { tasks: [] };
  const detail = `${lines}: of the tasks in it nobody can say whether they are there still`;
  return { finding: { kind: "books_altered", subject: `open tasks ${part + 1}`, agent: "", detail } };
}

/** At most: the hash of an id, that of a stamp, and a space. */
const HASHED_CHARS = 22;

/** Ends the list of what is left open: with hashes of all ids and stamps, in pieces, for whoever asks of one task. */
export async function closeOpen(pace: Pace, account: Account): Promise<OpenTasks> {
  const { open, plan } = account;
  await storeOpen(pace, account, true);
  const count = Math.ceil((open.count * HASHED_CHARS) / PART_CHARS);
  const pieceOf = pieces(plan.run, count);
  const empty = () => Array.from({ length: count }, (): string[] => []);
  // A text for each part, not one for each task: a million of those would fill a small heap.
  const texts = empty();
  for (const part of open.parts) {
    const lines = await readPart(pace, part);
    if (typeof lines === "string") continue;
    const hashes = empty();
    for (const line of lines) {
      const task = readOpenTask(line);
      if (!task || task.state === "completed" || task.state === "cancelled") continue;
      const { piece, hash } = pieceOf(task.id);
      hashes[piece]?.push(hash + task.stamp.toString(36));
    }
    for (const [piece, some] of hashes.entries()) if (some.length > 0) texts[piece]?.push(some.join(" "));
  }
  const names: string[] = [];
  for (const some of texts) {
    const text = some.join(" ");
    const name = await partName(plan.run, text);
    await pace.deps.store.putText(name, text);
    names.push(name);
  }
  return { run: plan.run, count: open.count, parts: open.parts, pieces: names };
}

/**
 * Of a task that the last report left open, the hash of the stamp that it had then; false of one that it did not.
 * Undefined where nobody can say.
 */
export async function leftOpen(
  { deps }: Pick<Pace, "deps">,
  open: OpenTasks,
  id: string,
): Promise<number | false | undefined> {
  if (open.count === 0) return false;
  const { piece, hash } = pieces(open.run, open.pieces.length)(id);
  const name = open.pieces[piece];
  const text = name && (await readText(deps.store, name));
  if (text === undefined || !name?.endsWith(hashOf(text))) return undefined;
  const line = text.split(" ").find((one) => one.startsWith(hash));
  return line === undefined ? false : Number.parseInt(line.slice(hash.length), 36);
}
