import { chmod, mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, test } from "vitest";
import { findJar, startEmulator } from "../../infra/local/emulator.ts";
import { findNatsServer } from "../../infra/local/find-nats.ts";
import { startProcess } from "../support/servers/runners.ts";
import { until } from "../support/time/until.ts";

const binary = inject("natsServer");

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A folder with a program that only says its version. */
async function fakeServer(version: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  await writeFile(join(folder, "nats-server"), `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(join(folder, "nats-server"), 0o755);
  return folder;
}

describe("a server that we started", () => {
  const program = `
    const { startNats } = await import(${JSON.stringify(fileURLToPath(new URL("../../infra/local/nats-server.ts", import.meta.url)))});
    const nats = await startNats({ binary: ${JSON.stringify(binary)} });
    console.log("PID " + nats.pid);
    if (process.env.END === "throw") setTimeout(() => { throw new Error("crash"); }, 10);
    if (process.env.END !== "return") setInterval(() => {}, 1000);
  `;
  test.each(["SIGKILL", "SIGTERM", "SIGINT", "throw", "return"])(
    "is stopped when its parent ends by %s",
    async (end) => {
      const parent = startProcess(["--input-type=module", "-e", program], { END: end });
      const pid = Number((await parent.says(/^PID /)).slice(4));
      if (end.startsWith("SIG")) await parent.kill(end as NodeJS.Signals);
      else await parent.exited;
      await until("the server is gone", async () => !isAlive(pid));
    },
  );
});

describe("finding a nats-server", () => {
  test("PAWL_NATS_SERVER comes first, and must be new enough", async () => {
    expect(await findNatsServer({ PAWL_NATS_SERVER: binary, PATH: "" })).toBe(binary);
    const old = join(await fakeServer("2.9.10"), "nats-server");
    await expect(findNatsServer({ PAWL_NATS_SERVER: old })).rejects.toThrow(
      /is version 2\.9\.10\. It should be a nats-server 2\.10 or newer/,
    );
    await expect(findNatsServer({ PAWL_NATS_SERVER: "/no/such" })).rejects.toThrow(
      /PAWL_NATS_SERVER=\/no\/such can't be run/,
    );
  });

  test("then the PATH, where one that is too old is passed over", async () => {
    const [old, good] = [await fakeServer("2.9.10"), await fakeServer("2.10.0")];
    expect(await findNatsServer({ PATH: `${old}:${good}` })).toBe(join(good, "nats-server"));
  });

  test("then the cache", async () => {
    const cache = await mkdtemp(join(tmpdir(), "pawl-test-"));
    await mkdir(join(cache, "pawl"));
    const cached = join(cache, "pawl/nats-server");
    await writeFile(cached, '#!/bin/sh\necho "nats-server: v3.0.0"\n');
    await chmod(cached, 0o755);
    expect(await findNatsServer({ PATH: await fakeServer("2.9.10"), XDG_CACHE_HOME: cache })).toBe(cached);
  });
});

test("a Firestore emulator that runs already is used and left running", async () => {
  await using emulator = await startEmulator({ FIRESTORE_EMULATOR_HOST: "127.0.0.1:9" });
  expect(emulator).toMatchObject({ host: "127.0.0.1:9", pid: undefined });
});

test("without gcloud, the newest emulator of firebase-tools' cache is found; without either, none", async () => {
  const cache = await mkdtemp(join(tmpdir(), "pawl-test-"));
  const env = { PATH: "", XDG_CACHE_HOME: cache };
  const folder = join(cache, "firebase/emulators");
  await mkdir(folder, { recursive: true });
  expect(await findJar({ ...env, HOME: cache })).toBeUndefined();
  for (const version of ["1.9.0", "1.19.8", "1.11.1"])
    await writeFile(join(folder, `cloud-firestore-emulator-v${version}.jar`), "");
  expect(await findJar(env)).toBe(join(folder, "cloud-firestore-emulator-v1.19.8.jar"));
});

test("gcloud's own emulator comes first, also where gcloud is a link", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  const component = join(folder, "sdk/platform/cloud-firestore-emulator");
  for (const made of [join(folder, "bin"), join(folder, "sdk/bin"), component])
    await mkdir(made, { recursive: true });
  await writeFile(join(folder, "sdk/bin/gcloud"), "");
  await symlink("../sdk/bin/gcloud", join(folder, "bin/gcloud"));
  const env = { PATH: `/nowhere:${join(folder, "bin")}`, XDG_CACHE_HOME: folder, HOME: folder };
  await writeFile(join(component, "cloud-firestore-emulator.jar"), "");
  expect(await findJar(env)).toBe(join(component, "cloud-firestore-emulator.jar"));
});
