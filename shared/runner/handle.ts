import { arrive } from "../dispatch/arrive.ts";
import { keepPoison } from "../dispatch/dead-letters.ts";
import { signal } from "../dispatch/operate.ts";
import { isPawlError, messageOf, type PawlError } from "../errors/errors.ts";
import { clearDoubt } from "../handler/disowned.ts";
import type { Deps } from "../ports/deps.ts";
import type { LogLevel } from "../ports/log.ts";
import { beforeClaim, StoreAway } from "../retry/guards.ts";
import type { Running } from "../task/document.ts";
import { childSignal } from "../task/signals.ts";
import { acknowledge, type HandledAs, type Recorded } from "./ack.ts";
import { claim, waitForPredecessor } from "./claim.ts";
import type { Execution, Received } from "./execution.ts";
import { holderCheck } from "./holder-check.ts";
import { takeLease } from "./lease.ts";
import { record } from "./record.ts";
import { run } from "./run.ts";

export interface Handled extends Recorded {
  readonly id: string;
  readonly seq: number;
}

/** One message, from its arrival to the last word about it. Never throws. */
export async function handle(deps: Deps, received: Received): Promise<Handled> {
  const execution = await begin(deps, received);
  const recorded = await work(execution).catch((error: unknown) => giveUp(execution, error));
  // The next pull is sent with the ack, and waits at the server when that frees this message's place.
  if (recorded.word.kind === "ack") execution.prefetch();
  await acknowledge(execution, recorded.word);
  await execution.lease.release();
  if (recorded.as === "in-doubt") await lookForWitness(execution);
  return report(execution, recorded);
}

async function begin(deps: Deps, received: Received): Promise<Execution> {
  const { delivery, queue, prefetch = () => {} } = received;
  const arrived = await arrive(deps, delivery, queue);
  const lease = takeLease(deps, delivery, idOf({ arrived, delivery }));
  return { ...received, prefetch, deps, arrived, lease };
}

/** What is known of its task: its id, or at least its subject. */
function idOf({ arrived, delivery }: Pick<Execution, "arrived" | "delivery">): string {
  return isPawlError(arrived) ? delivery.subject : arrived.envelope.id;
}

/** `id`: of the dead letter that keeps a message which is no task. */
type Worked = Recorded & { readonly id?: string };

async function work(execution: Execution): Promise<Worked> {
  const { arrived, deps } = execution;
  if (isPawlError(arrived)) return bury(execution, arrived);
  const cameAt = deps.clock.now();
  const claimed = await claim(execution, arrived);
  if (claimed.kind === "closed") return claimed.recorded;
  const holding = await waitForPredecessor(claimed.holding);
  deps.trace?.claimed(holding.held.task, cameAt);
  const ran = await run(holding);
  const recorded = await record(holding, ran);
  if (FINAL.has(recorded.as)) await tellParent(deps, holding.held.task);
  return recorded;
}

const FINAL: ReadonlySet<HandledAs> = new Set(["completed", "failed", "cancelled"]);

/** Who might say that the effect never began may have said so while the doubt was being written. */
async function lookForWitness(execution: Execution): Promise<void> {
  const { deps } = execution;
  const id = idOf(execution);
  await clearDoubt(deps, id).catch((error: unknown) => {
    deps.log("warn", "doubt.unsettled", { task: id, reason: messageOf(error) });
  });
}

/** Only a hint, so that the parent goes on at once: what became of a child is in the child's document. */
async function tellParent(deps: Deps, { id, parent }: Running): Promise<void> {
  if (parent === undefined) return;
  try {
    await signal(deps, parent, childSignal(id), null);
  } catch (error) {
    deps.log("warn", "parent.untold", { task: id, parent, reason: messageOf(error) });
  }
}

async function bury(execution: Execution, problem: PawlError): Promise<Worked> {
  const { deps, delivery, queue, lease, stop } = execution;
  const isSilent = holderCheck(deps, () => AbortSignal.any([lease.lost, stop]));
  const id = await keepPoison(
    deps,
    { delivery, queue, guard: beforeClaim(deps, lease, stop), isSilent },
    problem,
  );
  return { word: { kind: "ack" }, as: "dead-letter", detail: problem.code, id };
}

/** Before a message comes again that was let go of because the store is away: its lane waits as long. */
const LET_GO = 1_000;

/** Nothing was decided: leave the message to the next delivery, at once if we were only told to stop. */
function giveUp({ stop }: Execution, error: unknown): Worked {
  if (isPawlError(error, "lease_lost"))
    return { word: { kind: "silent" }, as: "abandoned", detail: "lease lost" };
  if (stop.aborted) return { word: { kind: "nak", delayMs: 0 }, as: "put-back", detail: "told to stop" };
  if (error instanceof StoreAway)
    return { word: { kind: "nak", delayMs: LET_GO }, as: "store-away", detail: error.message };
  return { word: { kind: "silent" }, as: "left", detail: messageOf(error) };
}

const LEVELS: Partial<Record<HandledAs, LogLevel>> = {
  left: "error",
  "store-away": "error",
  "other-key": "error",
  failed: "warn",
  retry: "warn",
  "dead-letter": "warn",
  "in-doubt": "warn",
  abandoned: "warn",
};

function report(execution: Execution, recorded: Worked): Handled {
  const { deps, delivery, queue } = execution;
  const handled = { ...recorded, id: recorded.id ?? idOf(execution), seq: delivery.seq };
  const { as, detail } = handled;
  deps.meter.count("deliveries", { agent: queue.agent, as });
  if (delivery.redelivered) deps.meter.count("redeliveries", { agent: queue.agent });
  deps.log(LEVELS[as] ?? "info", "task.handled", {
    task: handled.id,
    queue: delivery.queue,
    seq: handled.seq,
    as,
    detail,
  });
  return handled;
}
