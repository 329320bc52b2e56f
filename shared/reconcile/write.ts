import { messageOf } from "../errors/errors.ts";
import { series } from "../meter/counters.ts";
import { type Deps, uniqueToken } from "../ports/deps.ts";
import { policies } from "../retry/policies.ts";
import { pause } from "../retry/retry.ts";
import { sha256 } from "../values/json.ts";
import type { Account } from "./account.ts";
import { isRewound } from "./books/books.ts";
import { closeOpen } from "./books/open-tasks.ts";
import { hashOf, remember, sealedReportList, whyAltered } from "./books/remembered.ts";
import {
  type Format,
  LIST,
  type Listed,
  oldTexts,
  type Past,
  type QueueMark,
  type ReportList,
  textName,
  tidyReports,
} from "./books/reports.ts";
import type { SequenceBook } from "./books/sequences.ts";
import { readText } from "./books/texts.ts";
import {
  figuresOf,
  monthOf,
  type Operations,
  type Report,
  together,
  verdictOf,
  weekOf,
} from "./figures/report.ts";
import type { Findings } from "./findings/findings.ts";
import { allLeft, sorted } from "./findings/found.ts";
import { agentTallies, checkedSettings, queueReports } from "./findings/queues.ts";
import { isAway, type Pace } from "./pace.ts";

/** How a report is written in each form. */
export type Writers = Readonly<Record<Exclude<Format, "json">, (report: Report) => string>>;

export interface Reconciled {
  readonly report: Report;
  readonly listed: Listed;
  readonly documents: number;
}

/** `isNew`: it was listed by this one, and nobody else tells people of it. */
interface WrittenReport extends Reconciled {
  readonly isNew: boolean;
}

const MOST_LISTED = 130;
const MOST_PAST = 60;
const PAST_CHARS = 200_000;
const TRENDS = 12;

/** Until it is in the list; another reconciliation of the same plan may have been faster, with the same report. */
export async function writeReport(
  pace: Pace,
  result: Account,
  findings: Findings,
  writers: Writers,
): Promise<WrittenReport> {
  const { deps, stop } = pace;
  const { plan } = result;
  const span = { from: plan.from, to: plan.at };
  const open = await closeOpen(pace, result);
  const marks = await marksOf(result, deps.settings.retention);
  for (let failures = 0; ; ) {
    const { ledger, revision } = await remember(deps);
    // By another one with the same plan; or this one comes late, and newer ones have gone on without it.
    const isDone = ledger.lastRun === plan.run || (ledger.at ?? 0) >= plan.at;
    /** Weeks are compared with weeks, months with months. */
    const isAlike = (a: string, b: string) => a.includes("W") === b.includes("W");
    const own = { ...reportOf(deps, result, findings, ledger.counts ?? {}), ...chainOf(ledger) };
    const listed: Listed[] = [];
    // Two at once of one plan look at different moments: neither may write over the other's texts.
    const stamp = `${plan.run}-${uniqueToken()}`;
    for (const name of [weekOf(span), monthOf(span)]) {
      const before = ledger.reports.find((one) => one.name === name);
      if (isDone && before) {
        listed.push(before);
        continue;
      }
      const report = together(before && (await readSound(deps, before)), { ...own, name });
      const figures = figuresOf(report);
      const trends = [
        ...ledger.reports
          .filter((one) => one.name !== name && isAlike(one.name, name))
          .slice(0, TRENDS - 1)
          .reverse(),
        { name, figures },
      ];
      const whole: Report = {
        ...report,
        trends: trends.map((one) => ({ name: one.name, figures: one.figures })),
      };
      const { line: verdict, ok, level } = verdictOf(whole);
      const written = texts(whole, writers);
      const one: Listed = {
        name,
        hashes: await hashesOf(written),
        from: whole.span.from,
        to: whole.span.to,
        verdict,
        ok,
        level,
        left: allLeft(whole.findings),
        stamp,
        figures,
      };
      for (const [format, text] of Object.entries(written))
        await deps.store.putText(textName(one, format as Format), text);
      listed.push(one);
    }
    const [week] = listed as [Listed];
    const { documents } = result;
    // Where an answer was lost, the report in the list may be this one: rather told twice than not at all.
    const isNew = !isDone || (failures > 0 && ledger.lastRun === plan.run);
    const answer = { report: await readJson(deps, week), listed: week, documents, isNew };
    if (isDone) return answer;
    const others = ledger.reports.filter(({ name }) => !listed.some((one) => one.name === name));
    const reports = [...listed, ...others].sort((a, b) => b.to - a.to || (a.name < b.name ? 1 : -1));
    const shown = reports.slice(0, MOST_LISTED);
    const next: ReportList = {
      reports: shown,
      old: await oldTexts(deps.store, ledger, shown),
      at: plan.at,
      lastRun: plan.run,
      counts: plan.counts,
      marks,
      advisoriesSince: plan.advisories?.since,
      past: fitting([...(ledger.past ?? []), pastOf(result)].slice(-MOST_PAST)),
      position: plan.position,
      open,
      chain: hashOf(`${ledger.chain ?? ""} ${listed.map(({ hashes }) => hashes?.json).join(" ")}`),
      sealedSince: ledger.sealedSince ?? plan.at,
    };
    const whole = await sealedReportList(deps, next);
    try {
      const written = await deps.store.putRecord(LIST, whole.text, revision);
      if (written.kind === "refused") continue;
    } catch (error) {
      if (!isAway(error) || ++failures === policies.reconcile.tries || stop.aborted) throw error;
      await pause(deps, "reconcile", failures, stop);
      continue;
    }
    await tidyReports(deps.store, whole.ledger, ledger).catch((error: unknown) =>
      deps.log("warn", "reports.untidy", { reason: messageOf(error) }),
    );
    return answer;
  }
}

export function reportOf(
  deps: Deps,
  result: Account,
  findings: Findings,
  countsBefore: Readonly<Record<string, number>>,
): Report {
  const { plan, documents, repairs } = result;
  const span = { from: plan.from, to: plan.at };
  return {
    v: 1,
    name: weekOf(span),
    namespace: deps.settings.namespace,
    store: deps.store.name,
    span,
    runs: 1,
    documents,
    agents: agentTallies(result),
    queues: queueReports(result),
    live: result.live,
    findings: { ...findings, named: sorted(findings.named) },
    repairs,
    settings: checkedSettings(result, deps.settings),
    operations: operationsOf(plan.counts, countsBefore),
    trends: [],
    writtenAt: deps.clock.now(),
  };
}

async function hashesOf({ html, md, json }: Record<Format, string>): Promise<Record<Format, string>> {
  return { html: hashOf(html), md: hashOf(md), json: hashOf(json) };
}

const chainOf = ({ chain }: ReportList) => (chain === undefined ? {} : { chain });

/** A report as it was written. One that was changed or removed is named, and nothing is added to it. */
async function readSound(deps: Deps, listed: Listed): Promise<Report | undefined> {
  const text = await readText(deps.store, textName(listed, "json"));
  if (text === undefined || (await whyAltered(listed, "json", text)) !== undefined) return undefined;
  return JSON.parse(text) as Report;
}

function texts(report: Report, writers: Writers): Record<Format, string> {
  return { json: JSON.stringify(report), md: writers.md(report), html: writers.html(report) };
}

async function readJson(deps: Deps, listed: Listed): Promise<Report> {
  return JSON.parse((await readText(deps.store, textName(listed, "json"))) ?? "{}") as Report;
}

/** What the store was asked since the last time, by the functions' own count. */
function operationsOf(
  now: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
): Operations {
  const since = (name: string) => {
    const key = series(`${name}_total`, {});
    return Math.max(0, Math.round((now[key] ?? 0) - (before[key] ?? 0)));
  };
  return {
    reads: since("store_reads"),
    writes: since("store_writes"),
    readMs: since("store_read_ms"),
    writeMs: since("store_write_ms"),
  };
}

function pastOf({ plan }: Account): Past {
  return {
    at: plan.at,
    upTo: Object.fromEntries(plan.queues.map(({ stream, info }) => [stream, info.lastSeq])),
  };
}

/** With very many queues, fewer of them: all of it must fit one document. */
function fitting(past: readonly Past[]): readonly Past[] {
  return JSON.stringify(past).length > PAST_CHARS ? fitting(past.slice(Math.ceil(past.length / 4))) : past;
}

/**
 * Where the next one begins. A stream that is gone is remembered for as long as documents of its tasks are kept: one
 * that is made anew under its name has other sequences.
 */
async function marksOf({ plan, books }: Account, retention: number): Promise<Record<string, QueueMark>> {
  const gone = (plan.gone ?? [])
    .map(
      ({ stream, before }) =>
        [
          stream,
          {
            ...before,
            ...unexplainedIn(books.get(stream), before),
            open: [],
            goneSince: before.goneSince ?? plan.at,
          },
        ] as const,
    )
    .filter(([, { goneSince }]) => plan.at - goneSince < retention);
  const untouched = plan.broken.flatMap(({ stream, before }) => (before ? [[stream, before] as const] : []));
  const marks = plan.queues.map(async ({ stream, info, before }) => {
    const book = books.get(stream);
    const isAnew = before === undefined || isRewound(info, before);
    const mark: QueueMark = {
      createdAt: info.createdAt,
      consumerCreatedAt: info.consumer?.createdAt ?? before?.consumerCreatedAt ?? 0,
      upTo: info.lastSeq,
      open: book?.ranges("queued", "in_flight") ?? [],
      ...unexplainedIn(book, isAnew ? undefined : before),
      first: isAnew ? info.firstSeq : (before.first ?? before.upTo + 1),
      digest: await digestOf(isAnew ? undefined : before.digest, book),
    };
    return [stream, mark] as const;
  });
  return { ...Object.fromEntries([...gone, ...untouched, ...(await Promise.all(marks))]) };
}

/** So many ranges are remembered: all marks must fit one document. Tasks of older ones are left to a person. */
const MOST_UNEXPLAINED = 200;

function unexplainedIn(
  book: SequenceBook | undefined,
  before: QueueMark | undefined,
): Pick<QueueMark, "unexplained"> {
  const all = [...(before?.unexplained ?? []), ...(book?.ranges("unexplained") ?? [])];
  return all.length > 0 ? { unexplained: all.slice(-MOST_UNEXPLAINED) } : {};
}

/** Of what became of each sequence, and of those before them. */
async function digestOf(before: string | undefined, book: SequenceBook | undefined): Promise<string> {
  const classes = book ? sha256(book.kept.classes) : "";
  return hashOf(`${before ?? ""} ${book?.period.after} ${book?.period.upTo} ${classes}`);
}
