import { join } from "node:path";
import { expect, test } from "vitest";
import { isolated } from "../support/servers/isolated.ts";
import { CLI, startProcess } from "../support/servers/runners.ts";
import { emulatorHost, hasEmulator, testNats } from "../support/servers/stores.ts";

const TARGET = "staging-drills";
const AGENTS = join(import.meta.dirname, "../../infra/drills/agents");
const QUICK = { PAWL_ACK_WAIT: "2s", PAWL_STOP_GRACE: "1s" };

const drill = async (env: Record<string, string>) => {
  const run = startProcess([CLI, "drill", "crash-before-ack", "--target", TARGET], env);
  return { code: await run.exited, text: run.text() };
};
const HELD = "All five promises held in 1 of 1 drills.";

test.concurrent("a drill holds on servers that know the identities of pawl creds alone, and in its own namespace alone", async () => {
  await using stage = await isolated(AGENTS, "conf", { ...QUICK, PAWL_NAMESPACE: TARGET });
  const { PAWL_NAMESPACE: _, ...env } = await stage.env("operator");
  const { code, text } = await drill(env);
  expect([code, text]).toEqual([0, expect.stringContaining(HELD)]);
  // Of another namespace, this operator is refused, and told what would do.
  const run = startProcess([CLI, "drill", "crash-before-ack", "--target", "other"], env);
  expect([await run.exited, run.text()]).toEqual([
    1,
    expect.stringContaining("pawl creds --drills other writes one that may"),
  ]);
});

test.skipIf(!hasEmulator).concurrent("a drill holds where documents are in Firestore", async () => {
  await using nats = await testNats();
  const where = { GOOGLE_CLOUD_PROJECT: `p-${crypto.randomUUID().slice(0, 8)}` };
  const emulator = { PAWL_STORE: "firestore", FIRESTORE_EMULATOR_HOST: emulatorHost };
  const { code, text } = await drill({ ...QUICK, NATS_URL: nats.url, ...where, ...emulator });
  expect([code, text]).toEqual([0, expect.stringContaining(HELD)]);
});
