import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freeze } from "../../infra/drills/faults/freeze.ts";
import { hearWords } from "../../infra/drills/outside/words.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { observer } from "../support/observer.ts";
import {
  holdHandlers,
  letHandlersGo,
  notes,
  pausedRunner,
  pawl,
  recordFile,
} from "../support/servers/runners.ts";
import { oneOfEach, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const ACK_WAIT = 6_000;

describe.each(oneOfEach)("$kind: SIGSTOP for longer than ack_wait, then SIGCONT", ({ kind, here }) => {
  // All they do is wait for leases: together they wait once.
  test.skipIf(!here).concurrent.each([
    { name: "in the handler, woken while the second runs", at: "handler", wake: "running" },
    { name: "in the handler, woken after the second is done", at: "handler", wake: "completed" },
    { name: "between the lease check and the claim", at: "before:running", wake: "running" },
    { name: "between the lease check and the completion write", at: "before:completed", wake: "running" },
    { name: "between the completion write and the ack", at: "before:ack", wake: "completed" },
  ])("$name", async ({ at, wake }) => {
    const w = world(nats, kind, { ackWait: ACK_WAIT });
    await using deps = await observer(w);
    const file = await recordFile();
    const env = { TEST_RECORD: file, PAWL_DRILL_RESUME: "1" };
    const queue = { namespace: w.config.settings.namespace, agent: "recorder", lane: 0, generation: 1 };
    await deps.bus.ensure(queue);
    const words = hearWords(deps.nc, queue);
    await submit(deps, { agent: "recorder", lanes: 1, id: "task", input: {} });

    if (at === "handler") holdHandlers(file);
    const first = pausedRunner(w, at, env);
    if (at === "handler") await until("it has begun", async () => notes(file).length === 1);
    else await first.says(/^AT /);
    await freeze(first.pid);
    const frozenAt = Date.now();

    // Where the first is woken while the second runs, that one runs until the first has said what it makes of it.
    if (wake === "running") holdHandlers(file);
    else letHandlersGo(file);
    const second = pawl(w, ["run", "recorder", "--json"], env);
    const isFenced = at === "handler" || at === "before:completed";
    await until(`the second is ${wake}`, async () => {
      const task = (await deps.store.get("task"))?.task;
      if (task?.state === "running")
        return wake === "running" && task.runner.endsWith(String(second.pid)) && task.started;
      return task?.state === wake && (at !== "before:ack" || task.redeliveriesSkipped > 0);
    });
    const wokenAt = Date.now();
    // Only where it waits for it: the signal would end a process that does not.
    if (at !== "handler") process.kill(first.pid, "SIGUSR2");
    process.kill(first.pid, "SIGCONT");
    if (wake === "running") await first.says(/"task.handled"/);
    letHandlersGo(file);
    await until(
      "the task is completed",
      async () => (await deps.store.get("task"))?.task.state === "completed",
    );
    // Long enough for whatever the woken one might still do: its next beats, its retries.
    await new Promise((resolve) => setTimeout(resolve, ACK_WAIT));
    await second.kill("SIGTERM");
    await first.kill("SIGTERM");

    const task = (await deps.store.get("task"))?.task;
    if (!task) throw new Error("no document");
    expect(task).toMatchObject({ state: "completed", fence: isFenced ? 2 : 1, attempts: 0 });
    const stale = words.filter((word) => word.delivery === 1 && word.at > wokenAt).map((word) => word.word);
    if (at === "before:ack") {
      // Its work is recorded, so its late ack is true whoever says it; and nobody did the work again.
      expect(stale.every((word) => word === "+ACK")).toBe(true);
      expect(notes(file).map((note) => note.what)).toEqual(["start", "end"]);
    } else {
      // The frozen one wrote nothing after it was frozen, and said nothing about its delivery.
      expect(stale).toEqual([]);
      const writes = task.history.filter((entry) => entry.by.endsWith(`-${first.pid}`));
      // But for a later delivery, which its next pull got meanwhile: once all is done, it skips that.
      expect(writes.filter(({ at, event }) => at > frozenAt && event !== "skip")).toEqual([]);
    }
    expect(await deps.bus.lookup(queue, "task")).toBeUndefined();

    // The second started only when the first could no longer act.
    if (isFenced) {
      const ends = notes(file).filter(
        (note) => note.pid === first.pid && note.what === "end" && note.at > frozenAt,
      );
      expect(ends).toEqual([]);
      const takeover = task.history.find((entry) => entry.event === "takeover")?.at ?? 0;
      const start = notes(file).find((note) => note.pid === second.pid && note.what === "start")?.at ?? 0;
      expect(start - takeover).toBeGreaterThan((ACK_WAIT * 2) / 3);
      // It was alive to the end, and noticed.
      expect(first.text()).toContain('"lease.lost"');
    }
  });
});
