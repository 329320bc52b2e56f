import { PawlError } from "../../errors/errors.ts";
import type { TaskStore } from "../../ports/store.ts";
import type { Level } from "../figures/report.ts";
import type { Range } from "./sequences.ts";
import { readText, removeTexts } from "./texts.ts";

export const FORMATS = ["html", "md", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** How far a queue was explained the last time. */
export interface QueueMark {
  readonly createdAt: number;
  readonly consumerCreatedAt: number;
  readonly upTo: number;
  /** Sequences that were queued or in flight then. */
  readonly open: readonly Range[];
  /** Sequences that this report or an earlier one could not explain: their tasks may be open still. */
  readonly unexplained?: readonly Range[];
  /** The first sequence that was ever explained, and a hash of what became of all of them, report by report. */
  readonly first?: number;
  readonly digest?: string;
  /** When its stream was first missed: what was open in it is named by that report. */
  readonly goneSince?: number;
}

/** A report in the list of all. */
export interface Listed {
  /** An ISO week or a month: "2026-W46", "2026-11". */
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** The report's first line. */
  readonly verdict: string;
  /** Nothing is broken. */
  readonly ok: boolean;
  /** Reports of earlier versions have none. */
  readonly level?: Level;
  /** What somebody has to do something about, by kind. Reports of earlier versions don't say. */
  readonly left?: Readonly<Record<string, number>>;
  /** What its texts are stored under. */
  readonly stamp: string;
  /** Of its texts: one that was changed or removed is seen. Reports of earlier versions have none. */
  readonly hashes?: Readonly<Record<Format, string>>;
  /** A few numbers of it, for the trends of later ones. */
  readonly figures: Readonly<Record<string, number>>;
}

/** "look" is what a report of an earlier version could not say: somebody has to do something, and nothing is broken. */
export const levelOf = ({ level, ok }: Pick<Listed, "level" | "ok">): Level =>
  level ?? (ok ? "ok" : "broken");

/**
 * All reports and how far they explain every queue: one record, so that a checkpoint moves in the very write that makes
 * its report one of the list.
 */
export interface ReportList {
  readonly reports: readonly Listed[];
  /** When the last reconciliation was made. */
  readonly at?: number;
  readonly lastRun?: string;
  /** All counters then: the next report says what was added. */
  readonly counts?: Readonly<Record<string, number>>;
  readonly marks: Readonly<Record<string, QueueMark>>;
  /** Since when the server's words were captured then. */
  readonly advisoriesSince?: number | undefined;
  /** Texts that are needed no more: removed after the write, or by the next one. */
  readonly old?: readonly string[];
  /** When earlier ones were made, and how far: where a look back can begin and end. Oldest first. */
  readonly past?: readonly Past[];
  /** Where the last reconciliation began in the store's order of writes. */
  readonly position?: string;
  /** Tasks that it left open. */
  readonly open?: OpenTasks;
  /** Of all reports so far, each with those before it. */
  readonly chain?: string;
  /** Since when what has no seal was written past Pawl. */
  readonly sealedSince?: number;
  /** The text that has a copy of this. */
  readonly copy?: string;
  readonly seal?: string;
}

/** Tasks that a reconciliation left open, in texts beside the reports: `open-tasks.ts` writes and reads them. */
export interface OpenTasks {
  /** The run that wrote them: their texts' names begin with it, and it is the seed of their hashes. */
  readonly run: string;
  readonly count: number;
  readonly parts: readonly string[];
  /** Hashes of their ids, in pieces: to ask for one of them costs one read. */
  readonly pieces: readonly string[];
}

export interface Past {
  readonly at: number;
  readonly upTo: Readonly<Record<string, number>>;
}

export const LIST = "reports";

export const NO_LEDGER: ReportList = { reports: [], marks: {} };

/** For those who show reports. `remembered.ts` says whether it is as it was left. */
export async function readReportList(store: Pick<TaskStore, "getRecord">): Promise<ReportList> {
  const record = await store.getRecord(LIST);
  return (record && ledgerFrom(record.text)) ?? NO_LEDGER;
}

/** Undefined where it is none. */
export function ledgerFrom(text: string): ReportList | undefined {
  try {
    const ledger = JSON.parse(text) as ReportList | null;
    return Array.isArray(ledger?.reports) && typeof ledger.marks === "object" ? ledger : undefined;
  } catch {
    return undefined;
  }
}

const RECONCILED = "reconciled";

/**
 * When the last reconciliation was made, where the copy of its list is, and whether what it replaced was removed: known
 * without reading the list.
 */
export async function lastReconciled(
  store: Pick<TaskStore, "getRecord">,
): Promise<{ at: number; copy?: string; isTidy: boolean } | undefined> {
  const { text = "" } = (await store.getRecord(RECONCILED)) ?? {};
  const [, at, copy, tidy] = /^(\d+)(?: (\S+))?( tidy)?$/.exec(text) ?? [];
  return at === undefined ? undefined : { at: Number(at), ...(copy && { copy }), isTidy: tidy !== undefined };
}

export async function reconciledAt(store: Pick<TaskStore, "getRecord">): Promise<number | undefined> {
  return (await lastReconciled(store))?.at;
}

/**
 * Texts that are to be removed when `next` is listed in place of `before`: those that were replaced or fell off the list,
 * the list's copy, and what was open then.
 */
export async function oldTexts(
  store: TaskStore,
  before: ReportList,
  next: readonly Listed[],
): Promise<readonly string[]> {
  const texts = (reports: readonly Listed[]) =>
    reports.flatMap((one) => FORMATS.map((format) => textName(one, format)));
  const kept = new Set(texts(next));
  const last = await lastReconciled(store);
  const left = last?.isTidy && last.at === before.at ? [] : (before.old ?? []);
  const { copy, open } = before;
  const beside = [...(copy ? [copy] : []), ...(open ? [...open.parts, ...open.pieces] : [])];
  return [...left, ...beside, ...texts(before.reports)].filter((one) => !kept.has(one));
}

/**
 * After a report was listed: says when it was made, and where the copy of the list is. Then removes texts that no report
 * has any more, and what the reconciliation kept to go on from; what is left of them, the next one removes.
 */
export async function tidyReports(
  store: TaskStore,
  { at = 0, old = [], copy, open, reports }: ReportList,
  before: ReportList,
): Promise<void> {
  const last = await store.getRecord(RECONCILED);
  // A slow one comes behind a newer one, which has tidied already: what that one said of itself stays.
  if (((await reconciledAt(store)) ?? 0) > at) return;
  const said = [at, copy].join(" ").trim();
  const written = await store.putRecord(RECONCILED, said, last?.revision);
  const replaced = new Set(old);
  // Of the run before, also what it wrote and did not list; never that of a run that has just begun.
  const listed = new Set(reports.flatMap((one) => FORMATS.map((format) => textName(one, format))));
  const isUnlisted = (name: string) =>
    before.lastRun !== undefined && name.includes(`-${before.lastRun}-`) && !listed.has(name);
  const runBefore = before.open && before.open.run !== open?.run ? openPrefix(before.open.run) : undefined;
  await removeTexts(
    store,
    (name) =>
      replaced.has(name) ||
      isUnlisted(name) ||
      (runBefore !== undefined && name.startsWith(runBefore)) ||
      /^(book|reconcile)-/.test(name),
  );
  if (written.kind === "written") await store.putRecord(RECONCILED, `${said} tidy`, written.revision);
}

export const openPrefix = (run: string) => `open-${run}-`;

/** Newest first. */
export async function listReports(store: Pick<TaskStore, "getRecord">): Promise<readonly Listed[]> {
  return (await readReportList(store)).reports;
}

/** The newest week's without a name. */
export async function readReport(
  store: Pick<TaskStore, "getRecord" | "getText" | "getPart">,
  format: Format,
  name?: string,
): Promise<{ listed: Listed; text: string }> {
  const isMeant = (one: Listed) => (name === undefined ? one.name.includes("W") : one.name === name);
  let all = await listReports(store);
  // Replaced between the two reads, it is in the list under its new name.
  for (let tries = 0; tries < 2; tries++) {
    const listed = all.find(isMeant);
    const text = listed && (await readText(store, textName(listed, format)));
    if (listed && text !== undefined) return { listed, text };
    if (listed) all = await listReports(store);
  }
  const names = all.slice(0, 12).map((one) => one.name);
  const known =
    names.length > 0 ? `There are: ${names.join(", ")}` : "There is none yet: run `pawl reconcile`";
  throw new PawlError("report_unknown", `There is no report ${name ?? "of any week"}. ${known}`);
}

export const textName = ({ name, stamp }: Pick<Listed, "name" | "stamp">, format: Format) =>
  `${name}-${stamp}-${format}`;
