import type { Agent } from "../agent.ts";
import { type Arrived, arrive } from "../dispatch/arrive.ts";
import { keepPoison } from "../dispatch/dead-letters.ts";
import { signal } from "../dispatch/operate.ts";
import { isPawlError, messageOf, type PawlError } from "../errors/errors.ts";
import { settleDoubt } from "../handler/witness.ts";
import type { Delivery } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import { beforeClaim, StoreAway } from "../retry/guards.ts";
import type { Running } from "../task/document.ts";
import type { Queue } from "../task/names.ts";
import { childSignal } from "../task/signals.ts";
import { type Recorded, settle } from "./ack.ts";
import { claim, type HeldTask, waitForTurn } from "./claim.ts";
import { silence } from "./holder-check.ts";
import { handedOn } from "./invocation.ts";
import { type Hold, takeHold } from "./lease.ts";
import { journalOf } from "./outcome.ts";
import { record } from "./record.ts";
import { run } from "./run.ts";

export interface Handled extends Recorded {
  readonly id: string;
  readonly seq: number;
}

/** One message, from its arrival to the last word about it. Never throws. */
export async function handle(
  delivery: Delivery,
  queue: Queue,
  agent: Agent,
  stop: AbortSignal,
  deps: Deps,
  prefetch: () => void = () => {},
): Promise<Handled> {
  const arrived = await arrive(delivery, queue, deps);
  const id = isPawlError(arrived) ? delivery.subject : arrived.envelope.id;
  const hold = takeHold(delivery, id, deps);
  let recorded: Recorded & { id?: string };
  try {
    recorded = isPawlError(arrived)
      ? await bury(delivery, queue, arrived, hold, stop, deps)
      : await work(arrived, delivery, agent, hold, stop, deps, prefetch);
  } catch (error) {
    recorded = giveUp(error, stop);
  }
  if (recorded.word.kind === "ack") prefetch();
  await settle(delivery, recorded.word, hold, deps);
  await hold.release();
  if (recorded.as === "in-doubt") await lookForWitness(id, deps);
  const handled = { ...recorded, id: recorded.id ?? id, seq: delivery.seq };
  const { as, detail } = handled;
  deps.meter.count("deliveries", { agent: queue.agent, as });
  if (delivery.redelivered) deps.meter.count("redeliveries", { agent: queue.agent });
  const level =
    as === "left" || as === "store-away" || as === "other-key"
      ? "error"
      : ["failed", "retry", "dead-letter", "in-doubt", "abandoned"].includes(as)
        ? "warn"
        : "info";
  deps.log(level, "task.handled", {
    task: handled.id,
    queue: delivery.queue,
    seq: handled.seq,
    as,
    detail,
  });
  return handled;
}

async function work(
  arrived: Arrived,
  delivery: Delivery,
  agent: Agent,
  hold: Hold,
  stop: AbortSignal,
  deps: Deps,
  prefetch: () => void,
): Promise<Recorded> {
  const claimed = await claim(arrived, delivery, hold, stop, deps);
  if (claimed.kind === "closed") return claimed.recorded;
  let held: HeldTask;
  const waitsSince = deps.clock.monotonic();
  try {
    held = await waitForTurn(claimed.held, hold, stop, deps);
  } catch (error) {
    // Told to stop while waiting. The holder before may still act, so this is no release.
    if (!stop.aborted || isPawlError(error, "lease_lost")) throw error;
    const waited = Math.floor(deps.clock.monotonic() - waitsSince);
    const outcome = handedOn(
      { outcome: { kind: "handOff", ended: false, waited } },
      0,
      delivery,
      agent,
      deps,
    );
    const journal = journalOf(claimed.held.task);
    return record(claimed.held, { outcome, journal }, agent, hold, deps);
  }
  const begun = deps.clock.monotonic();
  const ran = await run(held.task, agent, hold, stop, deps);
  const outcome = handedOn(ran, deps.clock.monotonic() - begun, delivery, agent, deps);
  // Sent while the record is written, it waits at the server by the time the ack frees this message's place.
  prefetch();
  const recorded = await record(held, { ...ran, outcome }, agent, hold, deps);
  if (held.task.parent && FINAL.has(recorded.as)) await tellParent(held.task, held.task.parent, deps);
  return recorded;
}

/** Who might say that the effect never began may have said so while the doubt was being written. */
async function lookForWitness(id: string, deps: Deps): Promise<void> {
  await settleDoubt(deps, id).catch((error: unknown) => {
    deps.log("warn", "doubt.unsettled", { task: id, reason: messageOf(error) });
  });
}

const FINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** Only a hint, so that it goes on at once: what became of a child is in the child's document. */
async function tellParent({ id }: Running, parent: string, deps: Deps): Promise<void> {
  try {
    await signal(deps, parent, childSignal(id), null);
  } catch (error) {
    deps.log("warn", "parent.untold", { task: id, parent, reason: messageOf(error) });
  }
}

async function bury(
  delivery: Delivery,
  queue: Queue,
  problem: PawlError,
  hold: Hold,
  stop: AbortSignal,
  deps: Deps,
): Promise<Recorded & { id: string }> {
  const isSilent = silence(deps, AbortSignal.any([hold.lost, stop]));
  const id = await keepPoison(delivery, queue, problem, beforeClaim(hold, stop, deps), isSilent, deps);
  return { word: { kind: "ack" }, as: "dead-letter", detail: problem.code, id };
}

/** Before a message comes again that was let go of because the store is away: its lane waits as long. */
const LET_GO = 1_000;

/** Nothing was decided: leave the message to the next delivery, at once if we were only told to stop. */
function giveUp(error: unknown, stop: AbortSignal): Recorded {
  if (isPawlError(error, "lease_lost"))
    return { word: { kind: "silent" }, as: "abandoned", detail: "lease lost" };
  if (stop.aborted) return { word: { kind: "nak", delayMs: 0 }, as: "put-back", detail: "told to stop" };
  if (error instanceof StoreAway)
    return { word: { kind: "nak", delayMs: LET_GO }, as: "store-away", detail: error.message };
  return { word: { kind: "silent" }, as: "left", detail: messageOf(error) };
}
