import type { TaskStore } from "../ports/store.ts";
import { PawlError } from "../task/errors.ts";
import type { Range } from "../task/sequences.ts";

export const FORMATS = ["html", "md", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** How far a queue was explained the last time. */
export interface Mark {
  readonly createdAt: number;
  readonly consumerCreatedAt: number;
  readonly upTo: number;
  /** Sequences that were queued or in flight then. */
  readonly open: readonly Range[];
}

/** A report in the list of all. */
export interface Listed {
  /** An ISO week or a month: "2026-W46", "2026-11". */
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** Its first line. */
  readonly verdict: string;
  readonly ok: boolean;
  /** What its texts are stored under. */
  readonly stamp: string;
  /** A few numbers of it, for the trends of later ones. */
  readonly figures: Readonly<Record<string, number>>;
}

/**
 * All reports and how far they explain every queue: one record, so that a checkpoint moves in the very write that makes
 * its report one of the list.
 */
export interface Ledger {
  readonly reports: readonly Listed[];
  /** When the last reconciliation was made. */
  readonly at?: number;
  readonly lastRun?: string;
  /** All counters then: the next report says what was added. */
  readonly counts?: Readonly<Record<string, number>>;
  readonly marks: Readonly<Record<string, Mark>>;
  /** Since when the server's words were captured then. */
  readonly advisoriesSince?: number | undefined;
  /** Texts that no report has any more: removed after the write, or by the next one. */
  readonly old?: readonly string[];
  /** When earlier ones were made, and how far: where a look back can begin and end. Oldest first. */
  readonly past?: readonly Past[];
}

export interface Past {
  readonly at: number;
  readonly upTo: Readonly<Record<string, number>>;
}

/** No task can have this id, so nothing of a task's is ever stored beside it. */
export const REPORTS = "__reports__";
export const LIST = "reports";

export async function readLedger(store: Pick<TaskStore, "getRecord">): Promise<Ledger> {
  const record = await store.getRecord(LIST);
  return record ? (JSON.parse(record.text) as Ledger) : { reports: [], marks: {} };
}

const RECONCILED = "reconciled";

/** When the last reconciliation was made: known without reading the list. */
export async function reconciledAt(store: Pick<TaskStore, "getRecord">): Promise<number | undefined> {
  const record = await store.getRecord(RECONCILED);
  return record && Number(record.text);
}

/** Texts that are to be removed when `next` is listed in place of `before`: replaced, or fallen off the list. */
export async function oldTexts(
  store: TaskStore,
  before: Ledger,
  next: readonly Listed[],
): Promise<readonly string[]> {
  const texts = (reports: readonly Listed[]) =>
    reports.flatMap((one) => FORMATS.map((format) => partOf(one, format)));
  const kept = new Set(texts(next));
  const left = (await reconciledAt(store)) === before.at ? [] : (before.old ?? []);
  return [...left, ...texts(before.reports)].filter((one) => !kept.has(one));
}

/**
 * After a report was listed: removes texts that no report has any more, and what the reconciliation kept to go on from.
 * Then it says when it was made; where this is not what the list says, the next one removes what is left.
 */
export async function tidyReports(store: TaskStore, { at = 0, old = [] }: Ledger): Promise<void> {
  const replaced = new Set(old);
  await store.removeParts(REPORTS, (name) => replaced.has(name) || /^(book|reconcile)-/.test(name));
  const before = await store.getRecord(RECONCILED);
  await store.putRecord(RECONCILED, String(at), before?.revision);
}

/** Newest first. */
export async function listReports(store: Pick<TaskStore, "getRecord">): Promise<readonly Listed[]> {
  return (await readLedger(store)).reports;
}

/** The newest week's without a name. */
export async function readReport(
  store: Pick<TaskStore, "getRecord" | "getPart">,
  format: Format,
  name?: string,
): Promise<{ listed: Listed; text: string }> {
  const isMeant = (one: Listed) => (name === undefined ? one.name.includes("W") : one.name === name);
  let all = await listReports(store);
  // Replaced between the two reads, it is in the list under its new name.
  for (let tries = 0; tries < 2; tries++) {
    const listed = all.find(isMeant);
    const text = listed && (await store.getPart(REPORTS, partOf(listed, format)));
    if (listed && text !== undefined) return { listed, text };
    if (listed) all = await listReports(store);
  }
  const names = all.slice(0, 12).map((one) => one.name);
  const known =
    names.length > 0 ? `There are: ${names.join(", ")}` : "There is none yet: run `pawl reconcile`";
  throw new PawlError("report_unknown", `There is no report ${name ?? "of any week"}. ${known}`);
}

export const partOf = ({ name, stamp }: Pick<Listed, "name" | "stamp">, format: Format) =>
  `${name}-${stamp}-${format}`;
