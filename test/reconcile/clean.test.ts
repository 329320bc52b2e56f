import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Agent, Fatal, Retry } from "../../shared/agent.ts";
import { submitTicks } from "../../shared/dispatch/cron.ts";
import { cancel, redrive, signal } from "../../shared/dispatch/operate.ts";
import { published, total } from "../../shared/reconcile/figures/tally.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { isFinal } from "../../shared/task/table.ts";
import { AGENT, agentOf, type Bench, bench, untilAborted } from "../support/bench.ts";
import { dieAfter } from "../support/faults/death.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTE = 60_000;
const KINDS = [
  "plain",
  "retries",
  "sleeps",
  "waits",
  "approval",
  "parent",
  "dead",
  "handed",
  "cancelled-running",
  "cancelled-queued",
  "cancelled-scheduled",
  "cancelled-waiting",
] as const;
type Kind = (typeof KINDS)[number];

/** What publishers, handlers and operators count themselves: an account that no report has a part in. */
class Work {
  readonly counts = { created: 0, completed: 0, failed: 0, cancelled: 0, executions: 0, retries: 0 };
  readonly #ids = new Map<string, Kind>();
  /** Dead letters, each with how many reports there were when it became one. */
  readonly #letters = new Map<string, number>();
  readonly #handed = new Set<string>();
  readonly agent: Agent;
  b!: Bench;
  reports = 0;
  #stop = new AbortController();
  #minute = 0;

  constructor() {
    const limits = { backoff: { first: "1ms", longest: "1ms" } };
    this.agent = agentOf(async (context) => {
      this.counts.executions++;
      const result = await this.#run(context);
      this.counts.completed++;
      return result;
    }, limits);
  }

  async #run({
    id,
    input,
    attempt,
    signal: stopped,
    ...does
  }: Parameters<Agent["run"]>[0]): Promise<unknown> {
    const { kind } = input as { kind: Kind | "crashes" };
    if (kind === "retries" && attempt === 1) {
      this.counts.retries++;
      throw new Retry("not yet", 1);
    }
    if (kind === "sleeps") await does.sleep("20ms");
    if (kind === "waits" || kind === "cancelled-waiting") await does.waitFor("event");
    if (kind === "approval") await does.approval("go");
    if (kind === "parent") await (await does.submit(AGENT, { kind: "plain" }, { key: "only" })).result();
    if (kind === "crashes") await does.step("first", () => 1);
    if (kind === "handed" && !this.#handed.has(id)) {
      this.#handed.add(id);
      this.#stop.abort();
      return untilAborted(stopped);
    }
    if (kind === "cancelled-running") {
      await cancel(this.b.deps, id);
      return untilAborted(stopped);
    }
    if (kind === "dead" && !this.#letters.has(id)) {
      this.#letters.set(id, this.reports);
      this.counts.failed++;
      throw new Fatal("not this time");
    }
    return "done";
  }

  /** A holder dies, and another takes over. */
  async crash(id: string): Promise<void> {
    await this.b.submit({ kind: "crashes" }, { id });
    this.counts.created++;
    await dieAfter(this.b, this.agent, (head) => head.count >= 1);
  }

  async round(round: number): Promise<void> {
    for (const kind of KINDS) {
      const id = `${kind}-${round}`;
      const at = kind === "cancelled-scheduled" ? { at: Date.now() + 60 * MINUTE } : {};
      await this.b.submit({ kind }, { id, ...at });
      this.#ids.set(id, kind);
      this.counts.created += kind === "parent" ? 2 : 1;
      if (kind === "cancelled-scheduled" || kind === "cancelled-queued") await cancel(this.b.deps, id);
    }
    await this.#tick();
    await this.#drain();
    await this.#operate(false);
    await this.#drain();
  }

  /** Ticks of the last hours, minute by minute. */
  async #tick(): Promise<void> {
    const schedule = { name: "m", cron: "* * * * *", timezone: "UTC", input: { kind: "plain" } };
    const now = Date.now() - 600 * MINUTE + this.#minute++ * MINUTE;
    const deps = { ...this.b.deps, clock: { ...this.b.deps.clock, now: () => now } };
    this.counts.created += await submitTicks(deps, [{ name: AGENT, lanes: 1, schedules: [schedule] }]);
  }

  async #drain(): Promise<void> {
    this.#stop = new AbortController();
    await this.b.drain(undefined, this.#stop.signal);
  }

  /** What waits is answered or cancelled; dead letters that a report has seen, or all of them, are redriven. */
  async #operate(isAll: boolean): Promise<void> {
    const { deps } = this.b;
    for (const [id, kind] of this.#ids) {
      const task = await this.b.task(id);
      if (isFinal(task) && task.state !== "failed") {
        this.#ids.delete(id);
        if (task.state === "cancelled") this.counts.cancelled++;
      }
      if (task.state === "failed" && (isAll || (this.#letters.get(id) ?? 0) + 2 <= this.reports))
        await redrive(deps, id, { fromScratch: id.endsWith("0") });
      if (task.state !== "waiting") continue;
      if (kind === "cancelled-waiting") await cancel(deps, id);
      if (kind === "waits") await signal(deps, id, "event", 1);
      if (kind === "approval") await signal(deps, id, "approval:go", { approved: true, by: "somebody" });
    }
  }

  /** Until everything is over; dead letters stay, unless all of them are redriven. */
  end(isAll: boolean): Promise<true> {
    const states = () => Promise.all([...this.#ids.keys()].map(async (id) => (await this.b.task(id)).state));
    return until("everything is over", async () => {
      await this.#drain();
      await this.#operate(isAll);
      return (await states()).every((state) => state === "failed" && !isAll);
    });
  }
}

/** One that is cut off after some pages, time and again; then two at once. */
async function cutAndDoubled({ deps }: Bench): Promise<void> {
  for (let cuts = 0; cuts < 3; cuts++) {
    const stop = new AbortController();
    let left = 1 + Math.floor(Math.random() * 8);
    const changes: typeof deps.store.changes = (...args) => {
      if (--left === 0) stop.abort();
      return deps.store.changes(...args);
    };
    const store = { ...deps.store, pageSize: 10, changes };
    await reconcile({ ...deps, store }, stop.signal, { repair: true, writers, saveEvery: 7 });
  }
  const store = { ...deps.store, pageSize: 15 };
  for (const done of await Promise.all([reconciled({ ...deps, store }), reconciled(deps, { repair: true })]))
    expect(namesOf(done)).toEqual([]);
}

describe.each([
  { kind: "nats-kv" as StoreKind, here: true, reports: 3 },
  { kind: "firestore-rest" as StoreKind, here: hasEmulator, reports: 2 },
])("a clean history of every kind of task, $kind", ({ kind, here, reports }) => {
  test.skipIf(!here)("has no finding, and the figures are the publishers' and handlers' own", async () => {
    const work = new Work();
    // Long enough that no lease but the dead holder's ever ends, however busy the machine is.
    await using b = await bench(nats, kind, work.agent, { ackWait: 6_000 });
    Object.assign(b.deps, { lanesOf: () => 1 });
    work.b = b;
    await work.crash("crashes-1");
    let isOver = false;
    const working = (async () => {
      for (let round = 0; !isOver; round++) await work.round(round);
    })();
    for (; work.reports < reports; work.reports++) await cutAndDoubled(b);
    isOver = true;
    await working;
    await work.end(false);
    expect(namesOf(await reconciled(b.deps))).toEqual([]);
    await work.end(true);
    const last = await reconciled(b.deps);
    expect(namesOf(last)).toEqual([]);
    const all = total(last.report.agents);
    const { created, completed, failed, cancelled, executions, retries } = all;
    expect({ created, completed, failed, cancelled, executions, retries }).toEqual(work.counts);
    expect(all).toMatchObject({ takeovers: 1, executedTwice: 0, deadLetters: { fatal: failed } });
    expect(all.classes).toMatchObject({ queued: 0, in_flight: 0, unexplained: 0, completed });
    expect(published(all)).toBe((await b.deps.bus.inspect(b.queue)).lastSeq);
    expect(last.report.live).toEqual({});
    expect(created).toBe(completed + cancelled);
  });
});
