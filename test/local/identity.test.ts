import { mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { wire } from "../../functions/wiring/wire.node.ts";
import { startNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { agentQueues } from "../../shared/dispatch/queues.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Log } from "../../shared/ports/log.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { serve } from "../../shared/runner/serve.ts";
import { streamName } from "../../shared/task/names.ts";
import { credentials } from "../support/servers/nats-jwt.ts";
import { world } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";

const binary = inject("natsServer");

test("a user and password are sent; wrong ones are refused, by name and without the password in the message", async () => {
  await using nats = await startNats({ binary, config: 'authorization { user: "u", password: "right" }' });
  const { config } = world(nats, "nats-kv");
  for (const url of [nats.url, nats.wsUrl]) {
    await using deps = await wire({ ...config, nats: { url, user: "u", password: "right" } }, () => {});
    expect(await deps.store.get("nobody")).toBeUndefined();
    const refused = await wire({ ...config, nats: { url, user: "u", password: "wr0ng" } }, () => {}).catch(
      (e: Error) => e,
    );
    expect(refused).toMatchObject({
      code: "bus_refused",
      message: expect.stringContaining("NATS_USER and NATS_PASSWORD"),
    });
    expect(String((refused as Error).message)).not.toContain("wr0ng");
  }
});

test("tls:// insists on TLS, before a password is sent", async () => {
  const heard: string[] = [];
  const plain = createServer((socket) => {
    socket.write('INFO {"server_id":"x","version":"2.10.0","max_payload":1048576,"headers":true}\r\n');
    socket.on("data", (chunk) => heard.push(chunk.toString()));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  const address = plain.address();
  const url = `tls://127.0.0.1:${typeof address === "object" && address?.port}`;
  await using nats = await startNats({ binary });
  const { config } = world(nats, "nats-kv", { requestTimeout: 2_000 });
  await expect(
    wire({ ...config, nats: { url, user: "u", password: "s3cret" } }, () => {}),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/tls/i),
  });
  expect(heard.join("")).not.toContain("s3cret");
  plain.close();
});

test("a credentials file is used; one that can't be read is named", async () => {
  const { config: lines, creds } = credentials();
  await using nats = await startNats({ binary, config: lines });
  const file = join(await mkdtemp(join(tmpdir(), "pawl-test-")), "user.creds");
  await writeFile(file, creds);
  const { config } = world(nats, "nats-kv");
  await using deps = await wire({ ...config, nats: { url: nats.url, credsFile: file } }, () => {});
  expect(await deps.store.get("nobody")).toBeUndefined();
  await expect(wire(config, () => {})).rejects.toMatchObject({ code: "bus_refused" });
  await expect(
    wire({ ...config, nats: { url: nats.url, credsFile: "/no/such.creds" } }, () => {}),
  ).rejects.toMatchObject({
    code: "setting_invalid",
    message: expect.stringContaining("NATS_CREDS=/no/such.creds can't be read"),
  });
});

test("a user who may not create streams is told so", async () => {
  const users = `authorization { users: [
    { user: admin, password: p }
    { user: u, password: p, permissions: { publish: { deny: "$JS.API.STREAM.CREATE.>" } } }
  ] }`;
  await using nats = await startNats({ binary, config: users });
  const w = world(nats, "nats-kv", { requestTimeout: 2_000 });
  const as = (user: string) => wire({ ...w.config, nats: { url: nats.url, user, password: "p" } }, () => {});
  await expect(as("u")).rejects.toMatchObject({
    code: "store_refused",
    message: expect.stringMatching(/permission/i),
  });
  await (await as("admin"))[Symbol.asyncDispose]();
  await using deps = await as("u");
  const queue = { namespace: w.config.settings.namespace, agent: "a", lane: 0, generation: 1 };
  await expect(deps.bus.ensure(queue)).rejects.toMatchObject({
    code: "bus_refused",
    message: expect.stringMatching(/permission/i),
  });
});

test("who may not look at a queue is told so: it is neither empty nor gone", async () => {
  const queues = ["a", "b"].map((agent) => ({ namespace: "ns", agent, lane: 0, generation: 1 }));
  const [a = "", b = ""] = queues.map(streamName);
  const denied = [`STREAM.INFO.${a}`, `STREAM.MSG.GET.${b}`].map((api) => `"$JS.API.${api}"`);
  const users = `authorization { users: [
    { user: admin, password: p }
    { user: u, password: p, permissions: { publish: { deny: [${denied}] } } }
  ] }`;
  await using nats = await startNats({ binary, config: users });
  const w = world(nats, "nats-kv", { namespace: "ns", requestTimeout: 2_000 });
  const unseen: unknown[] = [];
  const log: Log = (level, event, fields = {}) => {
    if (event === "queue.unseen") unseen.push([level, fields.queue, fields.reason]);
  };
  const as = (user: string) => wire({ ...w.config, nats: { url: nats.url, user, password: "p" } }, log);
  await using admin = await as("admin");
  for (const queue of queues) {
    await admin.bus.ensure(queue);
    await submit(admin, { agent: queue.agent, lanes: 1, id: queue.agent, input: {} });
  }
  await using deps = await as("u");
  const refused = { code: "bus_refused", message: expect.stringMatching(/permission/i) };
  await expect(agentQueues(deps, [{ name: "a", lanes: 1 }])).rejects.toMatchObject(refused);
  // An agent that never ran has nothing.
  expect(await agentQueues(deps, [{ name: "c", lanes: 1 }])).toMatchObject([{ pending: 0 }]);
  // Without that look a sweep does not seek messages that are lost, and says so once, however many tasks there are.
  for (const id of ["a2", "a3"]) await submit(admin, { agent: "a", lanes: 1, id, input: {} });
  for (const agent of ["a", "c"]) expect(await dispatchDue(later(deps, 600_000), agent)).toBe(0);
  expect(unseen).toEqual([["warn", a, expect.stringMatching(/permission/i)]]);
  const report = reconcile(deps, new AbortController().signal, { repair: false, writers });
  await expect(report).rejects.toMatchObject(refused);
});

test("a user who may not answer for its claims still runs tasks", async () => {
  const users = `authorization { users: [
    { user: u, password: p, permissions: { publish: ">", subscribe: { deny: "*.holders.>" } } }
  ] }`;
  await using nats = await startNats({ binary, config: users });
  const w = world(nats, "nats-kv", { ackWait: 3_000 });
  await using deps = await wire({ ...w.config, nats: { url: nats.url, user: "u", password: "p" } }, () => {});
  const agent = defineAgent({
    run: () => new Promise((resolve) => setTimeout(() => resolve("done"), 2_000)),
  });
  await deps.bus.ensure({ namespace: w.config.settings.namespace, agent: "a", lane: 0, generation: 1 });
  await submit(deps, { agent: "a", lanes: 1, id: "t", input: {} });
  expect(await serve(deps, { name: "a", agent, mode: "drain", stop: new AbortController().signal })).toEqual({
    completed: 1,
  });
});
