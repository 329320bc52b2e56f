import { mkdtemp, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { judge } from "../../infra/demo/verdict.ts";
import { startProcess } from "../support/servers/runners.ts";
import { emulatorHost, hasEmulator } from "../support/servers/stores.ts";

const demo = fileURLToPath(new URL("../../infra/demo/demo.ts", import.meta.url));

test.skipIf(!hasEmulator)("the demo, on the Firestore emulator", async () => {
  const run = startProcess([demo], {
    PAWL_NATS_SERVER: inject("natsServer"),
    FIRESTORE_EMULATOR_HOST: emulatorHost,
  });
  expect(await run.exited, run.text()).toBe(0);
  expect(run.text()).toContain("documents: Firestore pawl-demo");
  expectWhole(run.text());
});

test("the demo where there is no emulator: one line says so, and how to get it", async () => {
  // A PATH with neither java nor gcloud.
  const bin = await mkdtemp(join(tmpdir(), "pawl-test-"));
  for (const tool of ["sleep", "sh"]) await symlink(`/bin/${tool}`, join(bin, tool));
  const env = {
    PAWL_NATS_SERVER: inject("natsServer"),
    PATH: `${bin}:${dirname(process.execPath)}`,
    HOME: bin,
  };
  const run = startProcess([demo], env);
  expect(await run.exited, run.text()).toBe(0);
  expect(run.text().match(/No Firestore emulator here.*Get it: .*/g)).toHaveLength(1);
  expect(run.text()).toContain("documents: NATS KV demo-tasks");
  expectWhole(run.text());
});

function expectWhole(text: string): void {
  for (const line of [
    /killed with SIGKILL, before its ack/,
    /found sequence 1 settled: skipped, and acked/,
    /took it over \(fence 2\)/,
    /stopped by the stream's duplicate window/,
    /stopped by the occupied subject/,
    /stopped by the document/,
    /3 tasks, 3 posts\. Done twice: none\. Lost: none\./,
    /Every task was done exactly once\./,
    /The report of \d{4}-W\d\d: All 3 sequences explained; nothing completed twice\./,
    /duplicates that reached execution +0$/m,
    /^ +Tasks completed +3 {3}3 came$/m,
    /^ +Time per task, p50 +\d.* {3}p95: \d.*, submit to completion$/m,
    /^ +model turns paid +3$/m,
    /^ +saved by the journal +< \$0\.01$/m,
    /^ +model turns saved +1$/m,
    /The whole of it: \S+\.html/,
  ]) {
    expect(text).toMatch(line);
  }
}

test("its verdict finds what it is there to find", () => {
  const good = { id: "a", state: "completed", done: 1 };
  expect(judge([good], 0)).toEqual({ twice: [], lost: [], ok: true });
  expect(judge([good, { ...good, id: "b", done: 2 }], 0)).toEqual({ twice: ["b"], lost: [], ok: false });
  expect(judge([{ ...good, state: "running" }], 0)).toMatchObject({ lost: ["a"], ok: false });
  expect(judge([{ ...good, done: 0 }], 0)).toMatchObject({ lost: ["a"], ok: false });
  expect(judge([good], 1).ok).toBe(false);
});
