import { type Deps, uniqueToken } from "../../ports/deps.ts";
import { recordText } from "../../seal/seal.ts";
import { sha256 } from "../../values/json.ts";
import type { Finding } from "../findings/findings.ts";
import {
  FORMATS,
  type Format,
  LIST,
  type Listed,
  lastReconciled,
  ledgerFrom,
  NO_LEDGER,
  type ReportList,
  textName,
} from "./reports.ts";
import { readText } from "./texts.ts";

/** What reconciliation remembers, as it was left; and what is wrong with it. */
export interface Remembered {
  readonly ledger: ReportList;
  /** What a write of it must have seen. */
  readonly revision?: string;
  readonly findings: readonly Finding[];
}

/**
 * Reads what earlier reconciliations left. The list of reports is sealed, and a copy of it is kept beside the reports;
 * another record says when the last one was made. Where they disagree, somebody changed or removed one of them: the copy
 * is gone on from, and without one everything is explained anew.
 */
export async function remember(deps: Deps): Promise<Remembered> {
  const { store } = deps;
  // In this order: a reconciliation beside this one writes the list first, and says so afterwards.
  const last = await lastReconciled(store);
  const record = await store.getRecord(LIST);
  const revision = record && { revision: record.revision };
  const ledger = record && ledgerFrom(record.text);
  const problem = await problemOf(deps, record?.text, ledger, last?.at);
  if (problem === undefined) return { ledger: ledger ?? NO_LEDGER, ...revision, findings: [] };
  const copy = last?.copy === undefined ? undefined : await readText(store, last.copy);
  const kept = copy === undefined ? undefined : ledgerFrom(copy);
  const isKept = kept && (await problemOf(deps, copy, kept, undefined)) === undefined;
  const did = isKept ? "its copy took its place" : "there is no copy of it: everything is explained anew";
  const finding: Finding = {
    kind: "books_altered",
    subject: "list of reports",
    agent: "",
    detail: `${problem}; ${did}`,
  };
  return { ledger: isKept ? kept : NO_LEDGER, ...revision, findings: [finding] };
}

async function problemOf(
  { sealer }: Deps,
  text: string | undefined,
  ledger: ReportList | undefined,
  reconciledAt: number | undefined,
): Promise<string | undefined> {
  if (text === undefined) return reconciledAt === undefined ? undefined : "it is gone";
  if (!ledger) return "it can't be read";
  if (ledger.seal === undefined) {
    // Of a version without seals, which this one would have sealed.
    if (!sealer.acceptsUnsealed || ledger.sealedSince !== undefined) return "it has no seal";
  } else if (!sealer.isGenuine(ledger.seal, textOf(ledger))) {
    return "another hand changed it, or it was sealed with another PAWL_SEAL_KEY";
  }
  if ((ledger.at ?? 0) < (reconciledAt ?? 0))
    return `it ends at ${iso(ledger.at ?? 0)}, and the last reconciliation was made at ${iso(reconciledAt ?? 0)}`;
  return undefined;
}

const iso = (at: number) => new Date(at).toISOString();

function textOf({ seal: _, ...ledger }: ReportList): string {
  return textToSeal(LIST, ledger);
}

/** What the seal of a record of reconciliation's own is made of; the record without its seal. */
export const textToSeal = (name: string, record: object) => recordText(name, JSON.stringify(record));

/** As it is to be written; its copy is stored first. */
export async function sealedReportList(
  { sealer, store }: Deps,
  ledger: ReportList,
): Promise<{ ledger: ReportList; text: string }> {
  const copy = `ledger-${uniqueToken()}`;
  const unsealed = { ...ledger, copy };
  const whole = { ...unsealed, seal: sealer.seal(textOf(unsealed)) };
  const text = JSON.stringify(whole);
  await store.putText(copy, text);
  return { ledger: whole, text };
}

/** So many of the newest reports are looked at again. */
const LOOKED_AT = 12;

/** Reports that were removed or changed since they were written. */
export async function reportFindings({ store }: Deps, { reports }: ReportList): Promise<Finding[]> {
  const looks = reports.slice(0, LOOKED_AT).map(async (listed): Promise<Finding[]> => {
    const whys = FORMATS.map(async (format) => {
      const why = await whyAltered(listed, format, await readText(store, textName(listed, format)));
      return why === undefined ? [] : [`its ${format} text ${why}`];
    });
    const detail = (await Promise.all(whys)).flat().join("; ");
    return detail ? [{ kind: "books_altered", subject: `report ${listed.name}`, agent: "", detail }] : [];
  });
  return (await Promise.all(looks)).flat();
}

/** What is wrong with a text of a report, by the hash that the list has of it. */
export async function whyAltered(
  { hashes }: Listed,
  format: Format,
  text: string | undefined,
): Promise<string | undefined> {
  if (text === undefined) return "is gone";
  return hashes === undefined || hashes[format] === hashOf(text) ? undefined : "was changed";
}

export const hashOf = (text: string) => sha256(text).slice(0, 32);
