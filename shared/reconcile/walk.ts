import { type Account, emptyAccount } from "./account.ts";
import { openBefore } from "./books/open-tasks.ts";
import { lookingAt } from "./look/look.ts";
import { isStuck } from "./look/repair.ts";
import { isAway, type Pace } from "./pace.ts";
import type { Plan } from "./plan.ts";
import {
  type Begun,
  FIRST,
  keep,
  load,
  planOrResume,
  type SavedAccount,
  STAGES,
  type Stage,
  type StagePlace,
} from "./progress.ts";
import { type Job, pages } from "./stages.ts";

/** How many documents are looked at between two savings of where it is; of many, a tenth of them. */
const SAVE_EVERY = 20_000;
/** And how long, in milliseconds: whoever is cut off without a word loses no more. */
const SAVE_AFTER = 30_000;

export interface AccountOptions {
  /** A look back keeps nothing: not where it is, and no report. */
  readonly plan?: Plan;
  readonly repair?: boolean;
  /** Reads all documents, also those that nobody wrote since the last time: it finds what was changed past Pawl. */
  readonly isWhole?: boolean;
  readonly lanes?: Readonly<Record<string, number>>;
  /** For those that go on in slices: called when there is more to do, and nobody else is at it. */
  readonly goOn?: () => void;
  readonly saveEvery?: number;
  readonly onProgress?: (documents: number) => void;
}

/**
 * Explains every sequence of every queue since the last time: streams, documents and consumers are asked on their own,
 * and must agree. It goes through its stages page by page. Undefined when it was cut off, in any of them: what was found
 * out is kept with where it is, and the next call goes on from there.
 */
export async function account(pace: Pace, options: AccountOptions = {}): Promise<Account | undefined> {
  const { goOn, onProgress = () => {}, repair = false, lanes = {} } = options;
  const begun = options.plan ? undefined : await planOrResume(pace, options.isWhole);
  const resumed = begun && (await load(pace.deps, begun));
  if (resumed) pace.deps.log("info", "reconcile.resumed", { ...begun.place, documents: resumed.documents });
  const result = resumed ?? emptyAccount(begun?.plan ?? (options.plan as Plan));
  const saving = savingOf(pace, result, begun, options.saveEvery ?? SAVE_EVERY);
  const job: Job = {
    pace,
    account: result,
    looking: lookingAt(pace, result, await openBefore(pace, result.plan.open)),
    isUrgent: saving.isUrgent,
    repair,
    lanes,
    onProgress,
  };
  let place = (resumed && begun?.place) ?? FIRST;
  try {
    for (let { stage } = place; stage !== "report"; stage = place.stage) {
      const step = await pages[stage](job, place.cursor);
      place = step === "over" ? { stage: following(stage) } : { stage, ...step };
      // Before anything is mended: whoever goes on after a crash must still know what was found.
      const isToMend = place.stage === "acks" && stage === "lags" && repair && isStuck(result);
      const isOver = pace.isOver();
      if (isToMend || isOver || saving.isDue()) await saving.save(place, isOver);
      if (goOn && saving.isTaken()) return undefined;
      if (!isOver) continue;
      goOn?.();
      return undefined;
    }
  } catch (error) {
    if (isAway(error)) await saving.save(place, true).catch(() => {});
    throw error;
  }
  return result;
}

const following = (stage: Stage): Stage => STAGES[STAGES.indexOf(stage) + 1] as Stage;

/** Keeps where a reconciliation is, until another one has taken over. */
function savingOf(pace: Pace, result: Account, begun: Begun | undefined, every: number) {
  const { clock } = pace.deps;
  const sequences = [...result.books.values()].reduce((sum, book) => sum + book.size, 0);
  const often = Math.max(every, sequences / 10);
  let last: { kept?: SavedAccount | undefined; revision: string } | undefined = begun;
  let documents = result.documents;
  let savedAt = clock.monotonic();
  const isUrgent = () => pace.isOver() || clock.monotonic() - savedAt >= SAVE_AFTER;
  return {
    isUrgent,
    isDue: () => isUrgent() || result.documents - documents >= often,
    /** Another one goes on from the same plan: it has the record. */
    isTaken: () => begun !== undefined && last === undefined,
    save: async (place: StagePlace, isLeft: boolean): Promise<void> => {
      documents = result.documents;
      savedAt = clock.monotonic();
      const before = last;
      if (before) last = await keep(pace, result, place, before, isLeft);
    },
  };
}
