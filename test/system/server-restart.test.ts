import { describe, expect, test } from "vitest";
import { submit } from "../../shared/dispatch/submit.ts";
import { notes, pawl, recordFile } from "../support/servers/runners.ts";
import { hasEmulator, testNats, wired, world } from "../support/servers/stores.ts";
import { allCompleted, until } from "../support/time/until.ts";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each([
  { store: "nats-kv", here: true },
  { store: "firestore-rest", here: hasEmulator },
] as const)("$store: nats-server under load", ({ store, here }) => {
  test.skipIf(!here).each(["SIGTERM", "SIGKILL"] as const)(
    "ended by %s five times: nothing lost, nothing run twice",
    async (signal) => {
      await using nats = await testNats();
      const w = world(nats, store, { ackWait: 8_000 });
      await using deps = await wired(w.config);
      const file = await recordFile();
      const lanes = 2;
      for (let lane = 0; lane < lanes; lane++) {
        await deps.bus.ensure({
          namespace: w.config.settings.namespace,
          agent: "recorder",
          lane,
          generation: 1,
        });
      }
      const env = { TEST_RECORD: file, TEST_LANES: String(lanes) };
      const runners = [0, 1, 2].map(() => pawl(w, ["run", "recorder", "--json"], env));

      const ids: string[] = [];
      let publishing = true;
      const publisher = (async () => {
        // Enough of them, also where each takes its time.
        for (let i = 0; publishing || i <= 50; i++) {
          const id = `t${i}`;
          // As the docs tell a submitter to: after an error, again with the same id.
          await until(`${id} is submitted`, () =>
            submit(deps, { agent: "recorder", lanes, id, input: { ms: 15 } }).then(
              () => true,
              () => false,
            ),
          );
          ids.push(id);
          await sleep(10);
        }
      })();
      // All of them: one that has yet to connect would end, rightly, where there is no server.
      for (const runner of runners) await runner.says(/"event":"run.started"/);
      await until("they run", async () => notes(file).length > 10);
      for (let time = 0; time < 5; time++) {
        await sleep(700);
        await nats.halt(signal);
        await sleep(200);
        await nats.restart();
      }
      await sleep(700);
      publishing = false;
      await publisher;
      await allCompleted(deps.store, ids);
      // The same three processes from first to last: none of them died of it.
      for (const runner of runners) {
        await runner.kill("SIGTERM");
        expect(await runner.exited, runner.text().slice(-2000)).toBe(0);
      }

      expect(ids.length).toBeGreaterThan(50);
      const starts = notes(file)
        .filter((note) => note.what === "start")
        .map((note) => note.id);
      const twice = starts.filter((id, i) => starts.indexOf(id) !== i);
      const [id] = twice;
      const account = id && {
        id,
        history: (await deps.store.get(id))?.task.history,
        notes: notes(file).filter((note) => note.id === id),
        logs: runners.flatMap((runner) =>
          runner
            .text()
            .split("\n")
            .filter((line) => line.includes(`"${id}"`)),
        ),
      };
      expect(account, JSON.stringify(account, null, 1)).toBeUndefined();
      expect(starts).toHaveLength(ids.length);
    },
  );
});
