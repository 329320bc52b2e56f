import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { startEmulator } from "../../infra/local/emulator.ts";
import { startGcpFunction } from "../../infra/local/functions-framework.ts";
import { freePort } from "../../infra/local/ports.ts";
import { startWorkerd } from "../../infra/local/workerd.ts";
import { bundle, varsOf } from "../support/servers/platforms.ts";
import { startProcess } from "../support/servers/runners.ts";
import { hasEmulator, testNats, world } from "../support/servers/stores.ts";

/** Somebody else's server, which answers everybody, on any port or on this one. */
async function stranger(port = 0) {
  const server: Server = createServer((socket) => {
    socket.on("error", () => {}).end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Chooses free ports, of which a stranger has the given ones, by their turn, before any server can bind them. */
function robbed(...turns: number[]) {
  const thieves = new AsyncDisposableStack();
  const lost: number[] = [];
  let turn = 0;
  const choosePort = async () => {
    const port = await freePort();
    if (turns.includes(turn++)) {
      thieves.use(await stranger(port));
      lost.push(port);
    }
    return port;
  };
  return { choosePort, lost, [Symbol.asyncDispose]: () => thieves.disposeAsync() };
}

const portOf = (url: string) => Number(new URL(url).port);

describe("a port that was taken between choice and start", () => {
  test.each([
    ["clients", 0],
    ["WebSockets", 1],
    ["the monitor", 2],
  ])("nats-server: that of %s, twice", async (_, turn) => {
    await using taken = robbed(turn, turn + 3);
    await using nats = await testNats({ choosePort: taken.choosePort });
    expect(taken.lost).toHaveLength(2);
    for (const url of [nats.url, nats.wsUrl, nats.monitorUrl]) expect(taken.lost).not.toContain(portOf(url));
    expect((await fetch(`${nats.monitorUrl}/healthz`)).status).toBe(200);
  });

  test("nats-server: always, which is an error that says so, and is not tried for ever", async () => {
    await using taken = robbed(...Array(100).keys());
    await expect(testNats({ choosePort: taken.choosePort })).rejects.toThrow(/address already in use/);
  });

  test("nats-server: one that its configuration names is not ready without it", async () => {
    await using other = await stranger();
    const config = `server_name: n1\ncluster { name: test, listen: "127.0.0.1:${other.port}", routes: ["nats://127.0.0.1:9"] }`;
    await expect(testNats({ config })).rejects.toThrow(/router port.* address already in use/);
  });

  test.skipIf(!hasEmulator)("the Firestore emulator", async () => {
    await using taken = robbed(0);
    const env = { ...process.env, FIRESTORE_EMULATOR_HOST: "" };
    await using emulator = await startEmulator(env, taken.choosePort);
    expect(taken.lost).toHaveLength(1);
    expect(taken.lost).not.toContain(portOf(`http://${emulator?.host}`));
  });

  test("workerd and Google's framework", async () => {
    await using nats = await testNats();
    const w = world(nats, "nats-kv");
    for (const turn of [0, 1]) {
      await using taken = robbed(turn);
      const built = await bundle("api", "cloudflare");
      await using workerd = await startWorkerd([built], {
        vars: varsOf(w, "cloudflare"),
        choosePort: taken.choosePort,
      });
      expect(taken.lost).toHaveLength(1);
      for (const url of [workerd.front, workerd.urls.api as string])
        expect(taken.lost).not.toContain(portOf(url));
      expect((await fetch(`${workerd.front}/api/health`)).status).toBe(200);
    }
    await using taken = robbed(0);
    const { folder } = await bundle("api", "gcp");
    await using local = await startGcpFunction(folder, varsOf(w, "gcp"), undefined, taken.choosePort);
    expect(taken.lost).toHaveLength(1);
    expect((await fetch(`${local.url}/health`)).status).toBe(200);
  });
});

test("a nats-server that restarts keeps its port, and waits for whoever has it", async () => {
  await using nats = await testNats();
  const { url } = nats;
  await nats.halt();
  const thief = await stranger(portOf(url));
  const restarted = nats.restart();
  const isBack = restarted.then(() => "back");
  // Long enough for several tries that fail.
  const late = new Promise((resolve) => setTimeout(resolve, 1_000, "waiting"));
  expect(await Promise.race([isBack, late])).toBe("waiting");
  await thief[Symbol.asyncDispose]();
  await restarted;
  expect(nats.url).toBe(url);
  expect((await fetch(`${nats.monitorUrl}/healthz`)).status).toBe(200);
});

describe("a free port", () => {
  const HOW_MANY = 1_000;

  test("is chosen by one process only", async () => {
    const file = fileURLToPath(new URL("../../infra/local/ports.ts", import.meta.url));
    const program = `
      const { freePort } = await import(${JSON.stringify(file)});
      const ports = [];
      for (let i = 0; i < ${HOW_MANY}; i++) ports.push(await freePort());
      console.log("PORTS " + ports.join(" "));
      setInterval(() => {}, 1000);
    `;
    const other = startProcess(["--input-type=module", "-e", program], {});
    const theirs = (await other.says(/^PORTS /)).split(" ").slice(1).map(Number);
    const ours: number[] = [];
    for (let i = 0; i < HOW_MANY; i++) ours.push(await freePort());
    expect(new Set([...ours, ...theirs]).size).toBe(2 * HOW_MANY);
    await other.kill("SIGKILL");
  });

  test("is none that the system gives to outgoing connections", async () => {
    const range = await readFile("/proc/sys/net/ipv4/ip_local_port_range", "utf8").catch(() => "49152");
    expect(await freePort()).toBeLessThan(Number.parseInt(range, 10));
  });
});
