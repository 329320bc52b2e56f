import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { claimProject, untilEnded } from "../../../infra/local/dev/lock.ts";
import { holdPid } from "../../../infra/local/dev/pid.ts";
import { startProcess } from "../../support/servers/runners.ts";
import { testNats } from "../../support/servers/stores.ts";

const LOCK = fileURLToPath(new URL("../../../infra/local/dev/lock.ts", import.meta.url));

test("a project is one process's, which is named; killed, it leaves the project to the next", async () => {
  const state = join(await mkdtemp(join(tmpdir(), "pawl-test-")), "dev");
  const program = `
    const { claimProject } = await import(${JSON.stringify(LOCK)});
    globalThis.held = claimProject(${JSON.stringify(state)});
    console.log("CLAIMED");
    setInterval(() => {}, 1000);`;
  const other = startProcess(["--input-type=module", "-e", program], {});
  await other.says(/CLAIMED/);
  expect(() => claimProject(state)).toThrow(
    new RegExp(`Another dev runs in this project \\(process ${other.pid}\\), on .*dev. Use that one`),
  );
  await other.kill("SIGKILL");
  using _ = claimProject(state);
});

test("a nats-server of before is waited for, and named if it does not end; a number that is another's is not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  await untilEnded(folder);
  const nats = await testNats({ folder });
  await expect(untilEnded(folder, 200)).rejects.toThrow(
    `A nats-server that an earlier dev left behind (process ${nats.pid}) still runs on ${folder}. End it: kill ${nats.pid}`,
  );
  const waiting = untilEnded(folder);
  await nats.stop();
  await waiting;
  await writeFile(join(folder, "nats.pid"), String(process.pid));
  await untilEnded(folder, 0);
});

test("an older Node holds a project by its process's number: what lives keeps it, what is dead gives way", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "pawl-test-")), "pid");
  const other = startProcess(["-e", "console.log('UP'); setInterval(() => {}, 1000)"], {});
  await other.says(/UP/);
  await writeFile(file, String(other.pid));
  expect(holdPid(file)).toBe(false);
  expect(await readFile(file, "utf8")).toBe(String(other.pid));
  await other.kill("SIGKILL");
  expect(holdPid(file)).toBe(true);
  expect(await readFile(file, "utf8")).toBe(String(process.pid));
  expect(await readdir(join(file, ".."))).toEqual(["pid"]);
});
