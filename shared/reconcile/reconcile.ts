import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { policies } from "../retry/policies.ts";
import { retry } from "../retry/retry.ts";
import { remember, reportFindings } from "./books/remembered.ts";
import { levelOf } from "./books/reports.ts";
import type { Report } from "./figures/report.ts";
import { found } from "./findings/found.ts";
import { queueFindings } from "./findings/queues.ts";
import { isAway, type Pace, paceOf } from "./pace.ts";
import { planBetween } from "./plan.ts";
import { close } from "./progress.ts";
import { account } from "./walk.ts";
import { type Reconciled, reportOf, type Writers, writeReport } from "./write.ts";

export interface ReconcileOptions {
  readonly repair: boolean;
  readonly writers: Writers;
  /** How many lanes each agent of this deployment has, where that is known. */
  readonly lanes?: Readonly<Record<string, number>>;
  /** Of a function, which has only so much time and so many calls, and then calls itself. */
  readonly slice?: Slice;
  readonly saveEvery?: number;
  /** Reads all documents, also those that nobody wrote since the last time: it finds what was changed past Pawl. */
  readonly isWhole?: boolean;
  /** Told how many documents were looked at. */
  readonly onProgress?: (documents: number) => void;
}

export interface Slice {
  /** How often the store may be asked in one invocation, about. */
  readonly mostCalls?: number;
  /** There is more to do, and nobody else is at it. */
  readonly goOn: () => void;
}

/** A plan that was made longer ago is not this week's. */
const LATE = 86_400_000;

/**
 * The whole of it: explains, repairs what is safe to repair, writes the week's and the month's report, and moves the
 * checkpoint in the write that lists them. Undefined when the time was over: call it again. One that was cut off long
 * ago is finished first, as of then; what came since is explained right after it.
 */
export async function reconcile(
  deps: Deps,
  stop: AbortSignal,
  options: ReconcileOptions,
): Promise<Reconciled | undefined> {
  const { lanes } = options;
  const knowing = lanes ? { ...deps, lanesOf: (agent: string) => lanes[agent] } : deps;
  const pace = paceOf(knowing, stop, options.slice?.mostCalls);
  try {
    const done = await reconcilePlan(pace, options);
    // Once: by a clock that is ahead of the servers' every plan was made long ago.
    const isLate = done && deps.clock.now() - done.at >= LATE;
    return isLate ? await reconcilePlan(pace, options) : done;
  } catch (error) {
    if (!options.slice || !isAway(error)) throw error;
    // What was found out is kept. It does not call itself: that would be at once, and in vain.
    deps.log("warn", "reconcile.cut", { reason: messageOf(error) });
    return undefined;
  }
}

/** `at`: when its plan was made. */
async function reconcilePlan(
  pace: Pace,
  { slice, writers, ...options }: ReconcileOptions,
): Promise<(Reconciled & { at: number }) | undefined> {
  const { deps, stop } = pace;
  const result = await account(pace, { ...options, ...(slice && { goOn: slice.goOn }) });
  if (!result) return undefined;
  const { ledger } = await remember(deps);
  const others = [...(await queueFindings(deps, result)), ...(await reportFindings(deps, ledger))];
  const findings = found(result.findings, ...others);
  const done = await writeReport(pace, result, findings, writers);
  await close(pace, result.plan);
  if (done.isNew) await tellReport(deps, done, stop);
  return { ...done, at: result.plan.at };
}

/** People are told of it, if they can be reached within a minute; the report is there in any case. */
async function tellReport(deps: Deps, { listed, report }: Reconciled, stop: AbortSignal): Promise<void> {
  const { name, verdict, ok, figures, stamp } = listed;
  const findings = { ...report.findings.counts };
  const data = { name, verdict, ok, level: levelOf(listed), figures: { ...figures }, findings };
  const notice = { id: `report.${name}.${stamp}`, type: "report.written", at: report.span.to, data };
  const { notify } = deps;
  if (!notify) return;
  const unheard = (error: unknown, tries: number) =>
    deps.log("warn", "webhook.failed", { report: name, tries, reason: messageOf(error) });
  const { tries } = policies.reportNotice;
  await retry(deps, "reportNotice", () => notify(notice), {
    mayPass: () => true,
    failed: unheard,
    stop,
  }).catch((error: unknown) => unheard(error, tries));
}

/** An earlier period once more, as the documents and streams are now. Nothing is kept, and nothing repaired. */
export async function lookBack(
  deps: Deps,
  stop: AbortSignal,
  { from, to }: { from: number; to: number },
): Promise<Report | undefined> {
  const plan = await planBetween(deps, from, to);
  const result = await account(paceOf(deps, stop), { plan });
  if (!result) return undefined;
  return reportOf(deps, result, found(result.findings, ...(await queueFindings(deps, result))), {});
}
