import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { configFrom } from "../../../functions/wiring/config.ts";
import { type Servers, startServers } from "../../../infra/local/dev/servers.ts";
import { descendants } from "../../support/servers/dev.ts";
import { hasEmulator, wired } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

/** The servers of a dev of its own, and what they say. */
async function stage(chosen: Record<string, string>, state?: string) {
  const folder = state ?? (await mkdtemp(join(tmpdir(), "pawl-test-")));
  const [said, failed]: [string[], string[]] = [[], []];
  const servers = await startServers({
    state: folder,
    chosen,
    tell: (line) => said.push(line),
    fail: (why) => failed.push(why),
  });
  return { servers, said, failed, folder };
}

const portOf = (url = "") => url.split(":").at(-1) as string;
const kill = (pattern: RegExp) => {
  const found = descendants(process.pid).find(
    ({ command }) => pattern.test(command) && !/^(\/bin\/)?sh /.test(command),
  );
  process.kill(found?.pid ?? Number.NaN, "SIGKILL");
};
const deps = ({ forCommands }: Servers) => wired(configFrom(forCommands));

test("a nats-server that dies comes back on its address and its data, which the next dev finds too", async () => {
  const { servers, said, failed, folder } = await stage({});
  expect(servers.forFunction("api")).toMatchObject({ PAWL_STORE: "nats-kv" });
  await using held = servers;
  await using wire = await deps(servers);
  await wire.store.putRecord("kept", "1");
  kill(new RegExp(`nats-server.*${folder}`));
  await until("it is back", async () => said.includes("nats-server is back"));
  expect(said[0]).toContain(`Documents are kept in NATS KV, in ${folder}`);
  expect(said[1]).toMatch(/! nats-server died \(137\). It is started again, on the same data/);
  expect(await until("it answers", async () => wire.store.getRecord("kept"))).toBeDefined();
  await wire[Symbol.asyncDispose]();
  await held[Symbol.asyncDispose]();
  const next = await stage({}, folder);
  await using again = next.servers;
  await using rewired = await deps(again);
  expect(await rewired.store.getRecord("kept")).toBeDefined();
  expect([...failed, ...next.failed]).toEqual([]);
});

describe.skipIf(!hasEmulator)("Firestore's emulator", () => {
  test("one of ours that dies ends dev: its documents are gone", async () => {
    const { servers, said, failed } = await stage({ PAWL_STORE: "firestore" });
    await using _ = servers;
    expect(said).toEqual([expect.stringContaining("keeps documents in memory")]);
    kill(new RegExp(`java.*--port ${portOf(servers.forFunction("api").FIRESTORE_EMULATOR_HOST)} `));
    await until("it was noticed", async () => failed.length > 0);
    expect(failed).toEqual([expect.stringMatching(/emulator died \(137\).*Start dev again: it begins anew/)]);
  });
});

test("an emulator of others that does not answer is noticed, and so is that it answers again", async () => {
  const open = () => createServer((_, response) => response.end("Ok"));
  const listen = (port: number) =>
    new Promise<ReturnType<typeof open>>((resolve) => {
      const server = open();
      server.listen(port, "127.0.0.1", () => resolve(server));
    });
  const first = await listen(0);
  const { port } = first.address() as AddressInfo;
  const { servers, said } = await stage({ FIRESTORE_EMULATOR_HOST: `127.0.0.1:${port}` });
  await using _ = servers;
  expect(servers.forFunction("api")).toMatchObject({
    PAWL_STORE: "firestore",
    FIRESTORE_EMULATOR_HOST: `127.0.0.1:${port}`,
  });
  first.closeAllConnections();
  await new Promise((resolve) => first.close(resolve));
  await until("it was missed", async () => said.some((line) => line.includes("does not answer")));
  const second = await listen(port);
  await until("it is back", async () => said.some((line) => line.includes("answers again")));
  second.close();
});
