import { jetstreamManager } from "@nats-io/jetstream";
import { queueOf } from "../../../shared/dispatch/dispatch.ts";
import type { Entry } from "../../../shared/journal/entries.ts";
import { readJournal } from "../../../shared/journal/journal.ts";
import { prices } from "../../../shared/journal/prices.ts";
import { costOf } from "../../../shared/journal/usage.ts";
import { type Verdict as Reconciled, verdictOf } from "../../../shared/reconcile/figures/report.ts";
import type { FindingName } from "../../../shared/reconcile/findings/findings.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../../shared/reconcile/reconcile.ts";
import type { Task } from "../../../shared/task/document.ts";
import { consumerName, streamName } from "../../../shared/task/names.ts";
import type { Deed } from "../outside/acts.ts";
import type { Look } from "../outside/board.ts";
import { TURN_USAGE } from "../outside/model.ts";
import type { Word } from "../outside/words.ts";
import type { Claimed, Given, Stage } from "../stage/stage.ts";
import { patiently } from "../until.ts";

/** What Pawl has stored of a task. */
export interface Stored {
  readonly task: Task;
  readonly entries: readonly Entry[];
}

/** A queue as its server has it, and all that the drill's documents have settled of it. */
export interface QueueSeen {
  readonly stream: string;
  readonly lastSeq: number;
  readonly left: number;
  /** How long a silent runner's message stays with it, as the server has it. */
  readonly ackWaitMs: number;
}

/** All that is judged by. Nothing moves any more. */
export interface Evidence {
  readonly given: readonly Given[];
  readonly claims: readonly Claimed[];
  readonly deeds: readonly Deed[];
  readonly looks: readonly Look[];
  readonly words: readonly Word[];
  readonly stored: ReadonlyMap<string, Stored>;
  readonly queues: readonly QueueSeen[];
  /** Every sequence that any document of the namespace has settled, and how often. */
  readonly settled: ReadonlyMap<string, number>;
  readonly reconciled: Reconciled & { readonly findings: readonly string[] };
  /** By the model's own meter, of each task, in dollars. */
  readonly paid: ReadonlyMap<string, number>;
  readonly budgets: ReadonlyMap<string, number>;
}

export async function gather(
  { deps, given, claims, board, words, ...stage }: Stage,
  agents: readonly string[],
  budget: number | undefined,
): Promise<Evidence> {
  const deeds = stage.deeds();
  const stored = new Map<string, Stored>();
  for (const { id } of given) {
    const task = (await patiently(() => deps.store.get(id)))?.task;
    if (!task) continue;
    const journal = await patiently(() => readJournal(deps, id, () => {}));
    stored.set(id, { task, entries: journal?.entries ?? [] });
  }
  const jsm = await jetstreamManager(deps.nc, { checkAPI: false });
  const queues: QueueSeen[] = [];
  for (const agent of agents) {
    const queue = queueOf(deps, { agent, lane: 0 });
    const [stream, name] = [streamName(queue), consumerName(queue)];
    const { lastSeq } = await patiently(() => deps.bus.inspect(queue));
    const { config, num_pending, num_ack_pending } = await patiently(() => jsm.consumers.info(stream, name));
    // Where there is a backoff, it replaces ack_wait.
    const ackWaitMs = (config.backoff?.[0] ?? config.ack_wait ?? 0) / 1e6;
    queues.push({ stream, lastSeq, left: num_pending + num_ack_pending, ackWaitMs });
  }
  const { usd } = costOf(TURN_USAGE, "claude-sonnet-5-5", prices);
  const turns = Map.groupBy(
    deeds.filter(({ kind }) => kind === "turn"),
    ({ id }) => id,
  );
  const paid = new Map([...turns].map(([id, all]) => [id, all.length * usd]));
  const budgets = new Map(budget === undefined ? [] : given.map(({ id }) => [id, budget] as const));
  const settled = await settledBy(deps);
  const reconciled = await explain(deps, agents);
  return {
    given,
    claims,
    deeds,
    looks: board.looks,
    words,
    stored,
    queues,
    settled,
    reconciled,
    paid,
    budgets,
  };
}

/** Our own count: of every document there is, not only of those that the drill knows. */
async function settledBy(deps: Stage["deps"]): Promise<Map<string, number>> {
  const count = new Map<string, number>();
  const seen = new Set<string>();
  for (let after: string | undefined, isLast = false; !isLast; ) {
    const page = await patiently(() => deps.store.changes(after, 100));
    for (const found of page.documents) {
      if (!("task" in found) || seen.has(found.task.id)) continue;
      seen.add(found.task.id);
      for (const { queue, seq } of found.task.settled)
        count.set(`${queue} ${seq}`, (count.get(`${queue} ${seq}`) ?? 0) + 1);
    }
    after = page.cursor;
    isLast = page.isLast;
  }
  return count;
}

async function explain(deps: Stage["deps"], agents: readonly string[]): Promise<Evidence["reconciled"]> {
  const lanes = Object.fromEntries(agents.map((agent) => [agent, 1]));
  const done = await reconcile(deps, new AbortController().signal, { repair: false, writers, lanes });
  if (!done) throw new Error("The reconciliation was stopped");
  const { named } = done.report.findings;
  const findings = named.map(
    ({ kind, subject, detail }: { kind: FindingName; subject: string; detail: string }) =>
      `${kind} ${subject}: ${detail}`,
  );
  return { ...verdictOf(done.report), findings };
}
