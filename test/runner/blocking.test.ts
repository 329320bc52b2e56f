import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent, Retry } from "../../shared/agent.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, bench } from "../support/bench.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";
import { allCompleted } from "../support/time/until.ts";

const FAILS_FOR = 10_000;
const others = Array.from({ length: 20 }, (_, i) => `other-${i}`);

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** What handlers did, by their own account. */
interface Deed {
  readonly id: string;
  readonly what: "fails" | "ends";
  readonly at: number;
}

/** A task that fails for ten seconds, and twenty submitted behind it, on one lane with one runner. */
async function race(kind: StoreKind, order: "loose" | "strict") {
  const deeds: Deed[] = [];
  const agent = defineAgent({
    limits: { order, lanes: 1, attempts: 1_000 },
    run: ({ id }) => {
      const at = Date.now();
      const [first] = deeds.filter((deed) => deed.id === id);
      // On a loose lane it fails for as long as the others need: those whom it delayed would never end.
      const mayEnd =
        order === "strict" || deeds.filter(({ what }) => what === "ends").length === others.length;
      const isOver = id !== "failing" || (first !== undefined && at - first.at >= FAILS_FOR && mayEnd);
      deeds.push({ id, what: isOver ? "ends" : "fails", at });
      if (!isOver) throw new Retry("not yet", 500);
    },
  });
  await using b = await bench(nats, kind, agent);
  await b.submit({}, { id: "failing" });
  for (const id of others) await b.submit({}, { id });
  const stop = new AbortController();
  const served = serve(b.deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await allCompleted(b.deps.store, ["failing", ...others]);
  stop.abort(new Error("told to stop"));
  const tally = await served;
  const tasks = await Promise.all(["failing", ...others].map((id) => b.task(id)));
  return { deeds, tally, tasks, ended: deeds.filter(({ what }) => what === "ends") };
}

describe.concurrent.each([
  { kind: "nats-kv", here: true },
  { kind: "firestore-rest", here: hasEmulator },
] as const)("$kind: a task that fails for ten seconds, and twenty behind it", ({ kind, here }) => {
  test.skipIf(!here)("does not delay them", async () => {
    const { deeds, tally, tasks, ended } = await race(kind, "loose");
    const [first] = deeds;
    expect(first).toMatchObject({ id: "failing", what: "fails" });
    const begun = first?.at ?? 0;
    expect(ended.slice(0, 20).map(({ id }) => id)).toEqual(others);
    expect(ended[20]).toMatchObject({ id: "failing" });
    expect((ended[20]?.at ?? 0) - begun).toBeGreaterThanOrEqual(FAILS_FOR);
    const failures = deeds.filter(({ what }) => what === "fails").length;
    expect(failures).toBeGreaterThanOrEqual(5);
    expect(tally).toEqual({ completed: 21, retry: failures });
    expect(tasks[0]).toMatchObject({
      attempts: failures,
      executions: failures + 1,
      dispatches: failures + 1,
    });
    for (const task of tasks.slice(1))
      expect(task).toMatchObject({ attempts: 0, executions: 1, dispatches: 1 });
  });

  test.skipIf(!here)("holds them all back on a strict lane, and they stay in order", async () => {
    const { deeds, tally, tasks, ended } = await race(kind, "strict");
    const [first] = deeds;
    const failures = deeds.filter(({ what }) => what === "fails").length;
    expect(failures).toBeGreaterThanOrEqual(5);
    // Not one of them even began before it was done.
    expect(deeds.map(({ id }) => id)).toEqual([...Array(failures + 1).fill("failing"), ...others]);
    expect(ended.map(({ id }) => id)).toEqual(["failing", ...others]);
    expect((ended[0]?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(FAILS_FOR);
    expect(tally).toEqual({ completed: 21, retry: failures });
    const completedAt = tasks.map(
      ({ history }) => history.find(({ event }) => event === "complete")?.at ?? 0,
    );
    expect(completedAt.every((at, i) => at >= (completedAt[0] ?? 0) && at >= (completedAt[i - 1] ?? 0))).toBe(
      true,
    );
    // In place: one message from first to last.
    expect(tasks[0]).toMatchObject({ attempts: failures, dispatches: 1, settled: [{ seq: 1 }] });
  });
});
