import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freeze } from "../../infra/drills/faults/freeze.ts";
import { type Emulator, startEmulator } from "../../infra/local/emulator.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { timing } from "../../shared/settings/settings.ts";
import { observer } from "../support/observer.ts";
import { holdHandlers, letHandlersGo, notes, pawl, recordFile } from "../support/servers/runners.ts";
import { hasEmulator, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const STORES = ["firestore", "firestore-rest"] as const;
const MOMENTS = ["just before a beat", "just before the completion"] as const;

let nats: LocalNats;
let emulator: Emulator | undefined;
/** All cases live through one stop of one emulator: each would wait for as long by itself. */
let cases: Awaited<ReturnType<typeof prepared>>[];

/** A runner that waits for its task. */
async function prepared(store: (typeof STORES)[number], when: (typeof MOMENTS)[number], host: string) {
  const w = world(nats, store, {}, host);
  const deps = await observer(w);
  const { namespace } = w.config.settings;
  await deps.bus.ensure({ namespace, agent: "recorder", lane: 0, generation: 1 });
  const file = await recordFile();
  holdHandlers(file);
  const runner = pawl(w, ["run", "recorder", "--json"], { TEST_RECORD: file });
  await runner.says(/"event":"run.started"/);
  return { store, when, deps, file, runner };
}

async function stopped(pid: number): Promise<void> {
  const [{ deps }] = cases as [(typeof cases)[0]];
  const { beatEvery } = timing(deps.settings);
  for (const one of cases) await submit(one.deps, { agent: "recorder", lanes: 1, id: "task", input: {} });
  await until("they have begun", async () => cases.every(({ file }) => notes(file).length === 1));
  const first = Math.min(...cases.map(({ file }) => notes(file)[0]?.at ?? 0));
  // The worst moment for a lease: its last whole beat is nearly a beat ago when the store goes away.
  await sleep(first + beatEvery - 1_000 - Date.now());
  await freeze(pid);
  for (const { when, file } of cases) if (when === "just before the completion") letHandlersGo(file);
  await sleep(10_000);
  process.kill(pid, "SIGCONT");
  await sleep(1_000);
  for (const { file } of cases) letHandlersGo(file);
}

beforeAll(async () => {
  if (!hasEmulator) return;
  [nats, emulator] = await Promise.all([
    testNats(),
    startEmulator({ ...process.env, FIRESTORE_EMULATOR_HOST: "" }),
  ]);
  if (!emulator?.pid) throw new Error("no emulator of our own");
  const { host, pid } = emulator;
  cases = await Promise.all(STORES.flatMap((store) => MOMENTS.map((when) => prepared(store, when, host))));
  await stopped(pid);
});
afterAll(async () => {
  for (const { deps, runner } of cases ?? []) {
    await runner.kill("SIGKILL");
    await deps[Symbol.asyncDispose]();
  }
  await emulator?.stop();
  await nats?.stop();
});

describe.each(STORES)("%s: the emulator stopped for 10 s", (store) => {
  test.skipIf(!hasEmulator).concurrent.each(MOMENTS)(
    "in the middle of a task, %s: nothing lost, nothing run twice, with the default settings",
    async (when) => {
      const one = cases.find((each) => each.store === store && each.when === when);
      if (!one) throw new Error("not prepared");
      const { deps, file, runner } = one;
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
