import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { startProcess } from "../support/servers/runners.ts";
import { until } from "../support/time/until.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));
const soak = (args: string, folder = tmpdir()) =>
  startProcess([main, ...args.split(" ")], { PAWL_NATS_SERVER: inject("natsServer"), TMPDIR: folder });
const emptyFolder = () => mkdtempSync(join(tmpdir(), "pawl-test-"));

test("40 tasks under faults: nothing wrong, quiet when piped, and nothing is left", async () => {
  const folder = emptyFolder();
  const report = join(emptyFolder(), "report.md");
  const run = soak(`--tasks 40 --minutes 0.15 --regime kv --seed 3 --json --report ${report}`, folder);
  expect(await run.exited, run.text()).toBe(0);
  // Only the answer.
  const { results, seed } = JSON.parse(run.text());
  const [{ verdict, accepted, faults, explained }] = results;
  expect(verdict).toEqual({ lost: 0, overlapped: 0, repeated: 0, unexplained: 0, "false alarms": 0 });
  expect(seed).toBe("3");
  // Where the broker was away for most of the time, not all of them were submitted.
  expect(accepted).toBeGreaterThan(10);
  expect(explained.sequences).toBeGreaterThanOrEqual(accepted);
  expect(faults.length).toBeGreaterThan(0);
  expect(readFileSync(report, "utf8")).toMatch(/^\| lost \| 0 \|$/m);
  expect(readdirSync(folder)).toEqual([]);
});

test("used wrongly, it ends with 2; its help has an example", async () => {
  const runs = ["--regime moon", "--tasks 0", "--minutes x", "--tasks 1.5", "now"].map((args) => soak(args));
  for (const run of runs) expect(await run.exited, run.text()).toBe(2);
  const help = soak("--help");
  expect(await help.exited).toBe(0);
  expect(help.text()).toContain("npm run soak -- --minutes 5 --regime kv --seed 7");
});

test("Ctrl-C leaves no process and no folder", async () => {
  const folder = emptyFolder();
  const run = soak("--tasks 40 --regime kv", folder);
  await until("its servers run", async () => readdirSync(folder).length >= 2);
  // Its servers name the folder in their arguments, its runners in their environment.
  const processes = () =>
    execFileSync("ps", ["axeww"], { maxBuffer: 2 ** 26 })
      .toString()
      .split(folder).length - 1;
  await until("its runners run", async () => processes() > 6);
  run.child.kill("SIGINT");
  expect(await run.exited, run.text()).toBe(130);
  expect(processes()).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});
