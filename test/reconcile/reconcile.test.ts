import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent, Fatal } from "../../shared/agent.ts";
import { readReport } from "../../shared/reconcile/books/reports.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agent = defineAgent({
  limits: { attempts: 2, backoff: { first: "50ms", longest: "50ms" } },
  run: ({ input, attempt }) => {
    const { fails } = input as { fails?: string };
    if (fails === "once" && attempt === 1) throw new Error("not yet");
    if (fails === "always") throw new Fatal("never");
    return "done";
  },
});

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "every sequence of ordinary work is explained, and the next week begins there",
    async () => {
      await using b = await bench(nats, kind, agent);
      for (let i = 0; i < 20; i++) await b.submit({ i }, { id: `ok-${i}` });
      await b.submit({ fails: "once" }, { id: "again" });
      await b.submit({ fails: "always" }, { id: "dead" });
      await b.submit({ i: 3 }, { id: "ok-3" });
      await until("all is done", async () => {
        await b.drain();
        return (await b.task("again")).state === "completed";
      });
      await b.submit({ i: 3 }, { id: "ok-3" });
      await b.submit({}, { id: "waits" });

      const first = await reconciled(b.deps);
      expect(namesOf(first)).toEqual([]);
      expect(first.listed).toMatchObject({
        ok: true,
        verdict: "All 24 sequences explained; nothing completed twice.",
      });
      expect(first.report.live).toEqual({ tested: { dispatched: 1 } });
      const all = total(first.report.agents);
      expect(all.classes).toMatchObject({
        completed: 21,
        failed: 1,
        rescheduled: 1,
        queued: 1,
        unexplained: 0,
      });
      expect(all).toMatchObject({
        created: 23,
        completed: 21,
        failed: 1,
        retries: 1,
        executions: 23,
        deadLetters: { fatal: 1 },
        duplicates: { window: 1, subject: 0, document: 1, key: 0 },
      });
      for (const format of ["html", "md", "json"] as const)
        expect((await readReport(b.deps.store, format)).text).toContain("24");

      // What waited is gone on with; what was explained is not counted again, but added to the week's.
      expect(await b.drain()).toEqual({ completed: 1 });
      await b.submit({}, { id: "new" });
      expect(await b.drain()).toEqual({ completed: 1 });
      const second = await reconciled(b.deps);
      expect(namesOf(second)).toEqual([]);
      const now = total(second.report.agents);
      expect(second.report.runs).toBe(2);
      expect([now.created, now.completed, now.classes.queued]).toEqual([24, 23, 0]);
      expect(second.listed.verdict).toBe("All 25 sequences explained; nothing completed twice.");
    },
  );
});
