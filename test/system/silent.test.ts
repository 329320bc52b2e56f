import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection, Status } from "@nats-io/nats-core";
import { afterEach, expect, test, vi } from "vitest";
import { watchNats } from "../../functions/wiring/watch.ts";
import { defineAgent } from "../../shared/agent.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { readThrough } from "../../shared/retry/guarded-write.ts";
import { AGENT, bench } from "../support/bench.ts";
import { pawl } from "../support/servers/runners.ts";
import { type Logged, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

afterEach(() => void vi.useRealTimers());

const users = (...names: string[]) =>
  `authorization { users: [${names.map((name) => `{ user: ${name}, password: p }`).join(", ")}] }`;

test("an idle runner says that it is refused, or that its server is away, and when that is over", async () => {
  await using nats = await testNats({ config: users("runner", "other") });
  const w = world(nats, "nats-kv");
  const env = { NATS_USER: "runner", NATS_PASSWORD: "p" };
  const runner = pawl(w, ["run", "recorder", "--json"], env);
  const lines = (event: string) =>
    runner
      .text()
      .split("\n")
      .filter((line) => line.includes(`"event":"${event}"`));
  await runner.says(/"event":"queue.ensured"/);
  await nats.reload(users("other"));
  expect(await runner.says(/refuses the identity/)).toMatch(
    /"level":"warn","event":"nats.away".*Authorization Violation.*NATS_USER and NATS_PASSWORD/,
  );
  await nats.reload(users("runner", "other"));
  expect(await runner.says(/"event":"nats.back"/)).toMatch(/"after":"\d+m?s"/);
  const before = lines("nats.away").length;
  await nats.halt("SIGKILL");
  await until("it says so", async () => lines("nats.away").length > before);
  expect(lines("nats.away").at(-1)).toContain("the connection is lost");
  await nats.restart();
  await until("it says that it is back", async () => lines("nats.back").length === 2);
  await runner.kill("SIGTERM");
  expect(await runner.exited).toBe(0);
});

test("what lasts is said every 15 seconds, with for how long already, and after 30 as an error", async () => {
  vi.useFakeTimers();
  const logged: Logged[] = [];
  let hear: (status: Status) => void = () => {};
  const heard = () =>
    new Promise<Status>((resolve) => {
      hear = resolve;
    });
  let isOpen = true;
  const nc = {
    info: { version: "2.10.0" },
    getServer: () => "here:1",
    async *status() {
      while (isOpen) yield await heard();
    },
  } as unknown as NatsConnection;
  const watching = watchNats(nc, (level, event, fields = {}) => void logged.push({ level, event, fields }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(logged).toEqual([]);
  hear({ type: "disconnect", server: "here:1" });
  await vi.advanceTimersByTimeAsync(50_000);
  isOpen = false;
  hear({ type: "reconnect", server: "there:2" });
  await vi.advanceTimersByTimeAsync(60_000);
  await watching;
  const told = logged.map(({ level, event, fields }) => [level, event, fields.for ?? fields.after]);
  expect(told).toEqual([
    ["warn", "nats.away", undefined],
    ["warn", "nats.away", "15s"],
    ["error", "nats.away", "30s"],
    ["error", "nats.away", "45s"],
    ["info", "nats.back", "50s"],
  ]);
});

test("a store that is away is said by the time that it lasts, not by the count of tries", async () => {
  await using nats = await testNats();
  await using b = await bench(nats, "nats-kv", defineAgent({ run: () => 1 }));
  let time = 0;
  let tries = 0;
  const deps: Deps = {
    ...b.deps,
    clock: {
      ...b.deps.clock,
      monotonic: () => time,
      sleep: async () => {
        time += 1_000;
      },
    },
    store: {
      ...b.deps.store,
      get: async (id) => {
        if (++tries <= 40) throw new PawlError("store_unavailable", "no answer");
        return b.deps.store.get(id);
      },
    },
  };
  await readThrough(deps, "t", () => {});
  const told = b.deps.logged.map(({ level, event, fields }) => [level, event, fields.for ?? fields.after]);
  expect(told).toEqual([
    ["warn", "store.unavailable", undefined],
    ["warn", "store.unavailable", "15s"],
    ["error", "store.unavailable", "30s"],
    ["info", "store.back", "40s"],
  ]);
});

test("a full disk is named by whoever gives up on it, and by whoever waits", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  const storage = (most: string) => `jetstream { store_dir: "${folder}", max_file_store: ${most} }`;
  await using nats = await testNats({ folder, config: storage("200KB") });
  const unlimited = { storeBytes: -1, queueBytes: -1 };
  await using b = await bench(nats, "nats-kv", defineAgent({ run: () => 1 }), unlimited);
  const bucket = `$KV.${b.world.config.settings.namespace}-tasks.filler`;
  await until("it is full", async () =>
    b.deps.nc
      .request(`${bucket}.${Math.random()}`, "x".repeat(50_000))
      .then((m) => m.string().includes("error")),
  );
  let time = 0;
  const hasty: Deps = {
    ...b.deps,
    clock: { ...b.deps.clock, monotonic: () => (time += 4_000), sleep: async () => {} },
  };
  const FULL = /insufficient resources: the NATS server's storage is full/;
  await expect(submit(hasty, { agent: AGENT, lanes: 1, id: "t", input: {} })).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(FULL),
  });
  const waiting = b.submit({}, { id: "t" });
  await until("it says why it waits", async () =>
    b.deps.logged.some(({ fields }) => FULL.test(String(fields.reason))),
  );
  await nats.reload(storage("20GB"));
  expect(await waiting).toMatchObject({ kind: "accepted" });
});
