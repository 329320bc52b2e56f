import { describe, expect, test } from "vitest";
import { startEmulator } from "../../infra/local/emulator.ts";
import { submit } from "../../shared/journey/submit.ts";
import { timing } from "../../shared/task/settings.ts";
import { freeze } from "../support/freeze.ts";
import { observer } from "../support/observer.ts";
import { notes, pawl, recordFile } from "../support/runners.ts";
import { hasEmulator, testNats, world } from "../support/stores.ts";
import { until } from "../support/until.ts";

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
      // The worst moment for the lease: its last whole beat is nearly a beat ago when the store goes away.
      const ms = when === "just before a beat" ? beatEvery + 11_000 : beatEvery - 500;
      await submit(deps, { agent: "recorder", lanes: 1, id: "task", input: { ms } });
      const runner = pawl(w, ["run", "recorder", "--json"], { TEST_RECORD: file });
      await expect.poll(() => notes(file).length, { timeout: 20_000, interval: 10 }).toBe(1);
      await sleep(beatEvery - 1_000);
      await freeze(emulator.pid);
      await sleep(10_000);
      process.kill(emulator.pid, "SIGCONT");
      await until("the task is completed", async () => {
        return (await deps.store.get("task").catch(() => undefined))?.task.state === "completed";
      });
      await runner.kill("SIGTERM");
      expect((await deps.store.get("task"))?.task).toMatchObject({ fence: 1, executions: 1, attempts: 0 });
      expect(notes(file).map((note) => note.what)).toEqual(["start", "end"]);
      expect(runner.text()).toMatch(/store|beat\.failed/);
    },
    90_000,
  );
});
