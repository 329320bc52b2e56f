import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { expireTasks } from "../../shared/dispatch/expire.ts";
import { listReports, readReport, readReportList } from "../../shared/reconcile/books/reports.ts";
import { verdictOf } from "../../shared/reconcile/figures/report.ts";
import { lookBack } from "../../shared/reconcile/reconcile.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const never = new AbortController().signal;
const agent = agentOf(async ({ step }) => step("one", () => "done"));

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function done(b: Bench, id: string, ms = 0): Promise<void> {
  await b.submit({}, { id });
  expect(await serve(later(b.deps, ms), { name: AGENT, agent, mode: "drain", stop: never })).toEqual({
    completed: 1,
  });
}

/** The texts of a bucket, by name. */
async function textNames({ nc, settings }: Wired): Promise<string[]> {
  const bucket = `${settings.namespace}-tasks`;
  const filter = { subjects_filter: `$KV.${bucket}.text.*` };
  const { state } = await (await jetstreamManager(nc)).streams.info(`KV_${bucket}`, filter);
  return Object.keys(state.subjects ?? {})
    .map((subject) => subject.split(".").at(-1) as string)
    .sort();
}

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "a runner that stays removes what has expired, and reconciliation stays right",
    async () => {
      await using b = await bench(nats, kind, agent);
      await done(b, "old");
      expect(namesOf(await reconciled(later(b.deps, 2 * HOUR)))).toEqual([]);
      await done(b, "unseen", 3 * HOUR);
      const stop = new AbortController();
      const running = serve(later(b.deps, 91 * DAY), {
        name: AGENT,
        agent,
        mode: "forever",
        stop: stop.signal,
      });
      await until("it is gone", async () => {
        const [document, journal] = [await b.deps.store.get("old"), await b.deps.store.getHead("old")];
        return document === undefined && journal === undefined;
      });
      stop.abort();
      await running;
      // It ended after the last reconciliation: without it, the next one could not explain its sequence.
      expect(await expireTasks(later(b.deps, 91 * DAY), never)).toBe(0);
      expect(b.deps.logged.some(({ event }) => event === "expiry.waits")).toBe(true);
      const next = await reconciled(later(b.deps, 91 * DAY));
      expect([namesOf(next), next.listed.verdict]).toEqual([
        [],
        "All 1 sequences explained; nothing completed twice.",
      ]);
      expect(await expireTasks(later(b.deps, 93 * DAY), never)).toBe(1);
      expect(await b.deps.store.get("unseen")).toBeUndefined();
      expect(await expireTasks(later(b.deps, 93 * DAY), never)).toBe(0);
    },
  );
});

test("where nobody reconciles, nobody waits for it", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  await done(b, "t");
  expect(await expireTasks(later(b.deps, 91 * DAY), never)).toBe(1);
});

test("a runner that drains its queue and ends removes some too", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  await done(b, "t");
  await serve(later(b.deps, 91 * DAY), { name: AGENT, agent, mode: "drain", stop: never });
  expect(await b.deps.store.get("t")).toBeUndefined();
});

test("a period whose documents are gone is not looked at again; later ones are", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  await done(b, "a");
  const { to: first } = (await reconciled(b.deps)).report.span;
  await done(b, "b", 30 * DAY);
  const { to: second } = (await reconciled(later(b.deps, 31 * DAY))).report.span;
  await done(b, "c", 32 * DAY);
  const { to: third } = (await reconciled(later(b.deps, 33 * DAY))).report.span;
  const now = later(b.deps, 100 * DAY);
  expect(await expireTasks(now, never)).toBe(1);
  const look = (from: number, to: number) => lookBack(now, never, { from, to });
  const day = (at: number) => new Date(at).toISOString().slice(0, 16);
  await expect(look(first, second)).rejects.toMatchObject({
    code: "period_expired",
    message: expect.stringMatching(
      new RegExp(`begin at ${day(first)}Z.*PAWL_RETENTION is 90d.*Begin at ${day(second)}Z or later`),
    ),
  });
  await expect(look(0, third)).rejects.toMatchObject({ code: "period_expired" });
  const report = await look(second, third);
  expect(report && verdictOf(report)).toMatchObject({ sequences: 1, ok: true });
});

test("of a report that is written again only the newest texts stay, and nothing that it was made from", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  await done(b, "a");
  await b.deps.store.putText("book-X-0-0", "left by one that was cut off");
  const first = await reconciled(b.deps);
  await done(b, "b");
  // Its removal fails: the next one does it.
  const removeTexts = () => Promise.reject(new Error("away"));
  const second = await reconciled({ ...b.deps, store: { ...b.deps.store, removeTexts } });
  const isText = (name: string) => /-(html|md|json)$/.test(name);
  const textsOf = async (stamp: string) =>
    (await textNames(b.deps)).filter((name) => isText(name) && name.includes(stamp)).length;
  const listed = await listReports(b.deps.store);
  expect(await textsOf(first.listed.stamp)).toBe(3 * listed.length);
  await done(b, "c");
  const third = await reconciled(b.deps);
  expect(await textsOf(first.listed.stamp)).toBe(0);
  expect(await textsOf(second.listed.stamp)).toBe(0);
  expect(await textsOf(third.listed.stamp)).toBe(3 * listed.length);
  const texts = await textNames(b.deps);
  expect(texts.filter(isText)).toHaveLength(3 * listed.length);
  // And the list's copy, and what was open, of the newest only.
  expect(texts.filter((name) => name.startsWith("ledger-"))).toHaveLength(1);
  const { open } = await readReportList(b.deps.store);
  expect(texts.filter((name) => name.startsWith("open-")).sort()).toEqual(
    [...(open?.parts ?? []), ...(open?.pieces ?? [])].sort(),
  );
  for (const { name } of listed)
    expect((await readReport(b.deps.store, "md", name)).text).toContain("All 3 sequences explained");
  // What is removed is not remembered for ever.
  const fourth = await reconciled(b.deps);
  const { text = "{}" } = (await b.deps.store.getRecord("reports")) ?? {};
  const { old } = JSON.parse(text) as { old: string[] };
  expect(old.filter(isText).every((one) => one.includes(third.listed.stamp))).toBe(true);
  expect(await textsOf(fourth.listed.stamp)).toBe(3 * listed.length);
});
