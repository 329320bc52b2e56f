import { describe, expect, test } from "vitest";
import { startEmulator } from "../../infra/local/emulator.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { timing } from "../../shared/settings/settings.ts";
import { freeze } from "../support/faults/freeze.ts";
import { observer } from "../support/observer.ts";
import { holdHandlers, letHandlersGo, notes, pawl, recordFile } from "../support/servers/runners.ts";
import { hasEmulator, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(["firestore", "firestore-rest"] as const)("%s: the emulator stopped for 10 s", (store) => {
  test.skipIf(!hasEmulator).each(["just before a beat", "just before the completion"])(
    "in the middle of a task, %s: nothing lost, nothing run twice, with the default settings",
    async (when) => {
      await using nats = await testNats();
      await using emulator = await startEmulator({ ...process.env, FIRESTORE_EMULATOR_HOST: "" });
      if (!emulator?.pid) throw new Error("no emulator of our own");
      const w = world(nats, store, {}, emulator.host);
      await using deps = await observer(w);
      const file = await recordFile();
      await deps.bus.ensure({
        namespace: w.config.settings.namespace,
        agent: "recorder",
        lane: 0,
        generation: 1,
      });
      const { beatEvery } = timing(w.config.settings);
      await submit(deps, { agent: "recorder", lanes: 1, id: "task", input: {} });
      holdHandlers(file);
      const runner = pawl(w, ["run", "recorder", "--json"], { TEST_RECORD: file });
      await expect.poll(() => notes(file).length, { interval: 10 }).toBe(1);
      // The worst moment for the lease: its last whole beat is nearly a beat ago when the store goes away.
      await sleep(beatEvery - 1_000);
      await freeze(emulator.pid);
      if (when === "just before the completion") letHandlersGo(file);
      await sleep(10_000);
      process.kill(emulator.pid, "SIGCONT");
      if (when === "just before a beat") await sleep(1_000);
      letHandlersGo(file);
      await until(
        "the task is completed",
        async () => (await deps.store.get("task"))?.task.state === "completed",
      );
      await runner.kill("SIGTERM");
      expect((await deps.store.get("task"))?.task).toMatchObject({ fence: 1, executions: 1, attempts: 0 });
      expect(notes(file).map((note) => note.what)).toEqual(["start", "end"]);
      expect(runner.text()).toMatch(
        when === "just before a beat" ? /"beat\.failed"/ : /"(beat\.failed|store\.unavailable)"/,
      );
    },
  );
});
