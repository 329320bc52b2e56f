import { splitText } from "../journal/parts.ts";
import { type Deps, uniqueToken } from "../ports/deps.ts";
import { type Account, accountFrom, textOf } from "./account.ts";
import { hashOf, type Remembered, remember, textToSeal } from "./books/remembered.ts";
import { readReportList } from "./books/reports.ts";
import { readText } from "./books/texts.ts";
import type { Finding } from "./findings/findings.ts";
import { askAgain, type Pace } from "./pace.ts";
import { type Plan, planFrom } from "./plan.ts";

/** What a reconciliation does, in this order. `reconcile-stages.ts` says how; docs/operator.md says why. */
export const STAGES = [
  "books",
  "documents",
  "open",
  "everything",
  "unheld",
  "lags",
  "acks",
  "stuck",
  "mended",
  "report",
] as const;
export type Stage = (typeof STAGES)[number];

/** Where a reconciliation is: the stage, and where its next page begins. */
export interface StagePlace {
  readonly stage: Stage;
  readonly cursor?: string | undefined;
}

/**
 * The record of a reconciliation that is under way: written before the plan is made, moved by each save, closed when
 * the report is listed. Whoever finds one that nobody has moved for a while may go on with it.
 */
interface Progress {
  readonly place: StagePlace | "planning" | "done";
  /** When somebody was last at it. */
  readonly touched: number;
  /** Differs in every write: an answer that was lost is recognised by it. */
  readonly stamp: string;
  /** Whoever was at it has ended: somebody is to go on. */
  readonly isLeft?: boolean;
  readonly plan?: Plan;
  /** What was found out up to this place: its texts are stored beside the reports. */
  readonly kept?: SavedAccount;
  /** Of all else: a plan that somebody changed would explain what is not so. */
  readonly seal?: string;
}

export interface SavedAccount {
  readonly save: string;
  /** Of what its texts hold together. */
  readonly hash: string;
  /** Two sets of texts by turns, each written over the last but one: of one that dies in the middle of a save, the other is whole. */
  readonly slot: 0 | 1;
  /** How many texts. */
  readonly parts: number;
}

export interface Begun {
  readonly plan: Plan;
  readonly place: StagePlace;
  readonly kept?: SavedAccount;
  readonly revision: string;
}

const PROGRESS = "reconcile-progress";
const textName = (slot: number, part: number) => `reconcile-${slot}-${part}`;

/** The plan of one that was cut off, or a new one. The record is ours then: an earlier one at it is refused its next save. */
export async function planOrResume(pace: Pace, isWhole = false): Promise<Begun> {
  const { deps } = pace;
  const remembered = await remember(deps);
  const { ledger } = remembered;
  const found = await deps.store.getRecord(PROGRESS);
  const left = found && (await sound(deps, progressFrom(found.text)));
  // A plan of an earlier version does not say where it is in the store's order of writes.
  const plan = left?.place === "done" || left?.plan?.position === undefined ? undefined : left.plan;
  // A plan that is older than the last report was finished by another reconciliation.
  if (found && left && plan && plan.at > (ledger.at ?? 0)) {
    const place = isPlace(left.place) ? left.place : FIRST;
    const revision = await write(pace, { ...left, place, isLeft: false }, found.revision);
    const { kept } = left;
    // Refused: another one is about to go on with it too, or has.
    return revision === undefined
      ? planOrResume(pace, isWhole)
      : { plan, place, revision, ...(kept && { kept }) };
  }
  // Dead before there is a plan, it is gone on with all the same. Of several that plan, the first to write is followed.
  const isPlanned = left?.place === "planning";
  const planning = isPlanned ? found?.revision : await write(pace, { place: "planning" }, found?.revision);
  if (planning === undefined) return planOrResume(pace, isWhole);
  const made = await planFrom(deps, withUnreadable(remembered, found !== undefined && !left), isWhole);
  const revision = await write(pace, { place: FIRST, plan: made }, planning);
  // Another one has begun at the same moment: its plan is as good.
  return revision === undefined ? planOrResume(pace, isWhole) : { plan: made, place: FIRST, revision };
}

/** Undefined where it can't be read: whoever wrote over it, everything is begun anew. */
function progressFrom(text: string): Progress | undefined {
  try {
    const progress = JSON.parse(text) as Progress | null;
    return progress && typeof progress.touched === "number" && progress.place ? progress : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined where its plan is not as it was left. A plan without a place in the store's order of writes is gone on with by nobody. */
async function sound({ sealer }: Deps, progress: Progress | undefined): Promise<Progress | undefined> {
  if (progress?.plan?.position === undefined) return progress;
  const { seal = "" } = progress;
  return sealer.isGenuine(seal, sealText(progress)) ? progress : undefined;
}

function sealText({ seal: _, ...progress }: Progress): string {
  return textToSeal(PROGRESS, progress);
}

function withUnreadable(remembered: Remembered, isUnreadable: boolean): Remembered {
  if (!isUnreadable) return remembered;
  const detail =
    "what a reconciliation that was cut off had found out can't be read, or was changed: it was begun anew";
  const finding: Finding = { kind: "unreadable", subject: `record ${PROGRESS}`, agent: "", detail };
  return { ...remembered, findings: [...remembered.findings, finding] };
}

export const FIRST: StagePlace = { stage: STAGES[0] };

/** Records of earlier versions had other names for places. */
function isPlace(place: Progress["place"] | undefined): place is StagePlace {
  return typeof place === "object" && STAGES.includes(place.stage);
}

/** Undefined when another reconciliation has gone on from the same place. */
async function write(
  pace: Pace,
  progress: Omit<Progress, "touched" | "stamp">,
  seen: string | undefined,
): Promise<string | undefined> {
  const { store, clock, sealer } = pace.deps;
  const next: Progress = { ...progress, touched: clock.now(), stamp: uniqueToken() };
  const text = JSON.stringify({ ...next, seal: sealer.seal(sealText(next)) });
  return askAgain(pace, async () => {
    const written = await store.putRecord(PROGRESS, text, seen);
    if (written.kind === "written") return written.revision;
    // By this very write, whose answer was lost?
    const there = await store.getRecord(PROGRESS);
    return there?.text === text ? there.revision : undefined;
  });
}

/** Keeps what was found out and where it is. Undefined when another reconciliation has taken over: nothing is kept then. */
export async function keep(
  pace: Pace,
  account: Account,
  place: StagePlace,
  before: { readonly kept?: SavedAccount | undefined; readonly revision: string },
  isLeft: boolean,
): Promise<{ kept: SavedAccount; revision: string } | undefined> {
  const { plan } = account;
  const save = uniqueToken();
  const slot = before.kept?.slot === 0 ? 1 : 0;
  const whole = textOf(account, save);
  const texts = splitText(whole);
  for (const [i, text] of texts.entries()) await pace.deps.store.putText(textName(slot, i), text);
  const kept: SavedAccount = { save, hash: await hashOf(whole), slot, parts: texts.length };
  const revision = await write(pace, { place, plan, kept, isLeft }, before.revision);
  return revision === undefined ? undefined : { kept, revision };
}

/** What was kept; undefined where it is not whole: then it begins anew, on the same plan. */
export async function load(deps: Deps, { plan, kept }: Begun): Promise<Account | undefined> {
  if (!kept) return undefined;
  const { save, hash, slot, parts } = kept;
  const texts: string[] = [];
  for (let i = 0; i < parts; i++) texts.push((await readText(deps.store, textName(slot, i))) ?? "");
  const text = texts.join("");
  return hash === (await hashOf(text)) ? accountFrom(plan, text, save) : undefined;
}

/** Closes the record of a reconciliation whose report is listed: nobody has to go on with it. */
export async function close(pace: Pace, { run }: Plan): Promise<void> {
  const found = await pace.deps.store.getRecord(PROGRESS);
  const left = found && progressFrom(found.text);
  if (left?.plan?.run === run) await write(pace, { place: "done" }, found?.revision);
}

/** Much longer than any reconciliation goes without a save. */
const ABANDONED_AFTER = 5 * 60_000;
/** Long enough for a function to be woken by the slice before. */
const NOT_WOKEN_AFTER = 60_000;

/**
 * Whether a reconciliation was cut off and nobody is at it: killed, or its call of itself was lost or refused. Cloudflare
 * refuses the sixteenth in a row of Workers that call each other.
 */
export async function isAbandoned(deps: Pick<Deps, "store" | "clock">): Promise<boolean> {
  const found = await deps.store.getRecord(PROGRESS);
  const left = found && progressFrom(found.text);
  if (!left) return false;
  const { place, touched, isLeft, plan } = left;
  const patience = isLeft ? NOT_WOKEN_AFTER : ABANDONED_AFTER;
  if (place === "done" || deps.clock.now() - touched < patience) return false;
  // Dead between its last two writes it has nothing left to do.
  return plan === undefined || plan.at > ((await readReportList(deps.store)).at ?? 0);
}
