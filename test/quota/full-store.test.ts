import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { makeSettings, type Settings } from "../../shared/settings/settings.ts";
import { createApp } from "../../shared/web/app.ts";
import type { Bindings } from "../../shared/web/context.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { read } from "../support/http/web.ts";
import { testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

const MB = 1_000_000;
const INPUT = { text: "x".repeat(500_000) };

/** The server has 40 MB in all unless told otherwise: store and queue have their own set aside. */
async function smallServer(given: Partial<Settings>, mostMB = 40) {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  const config = `jetstream { store_dir: "${folder}", max_file_store: ${mostMB}MB }`;
  const nats = await testNats({ folder, config });
  const agent = agentOf(async ({ step, input }) => {
    for (let i = 0; i < 3; i++) await step(`s${i}`, () => "y".repeat(20_000));
    return Object.keys(input as object);
  });
  const b = await bench(nats, "nats-kv", agent, given);
  const app = createApp({ agents: [{ name: "tested", lanes: 1 }] });
  const bindings: Bindings = { open: async () => b.deps, log: b.deps.log, rateLimit: 6_000_000 };
  const tokens = new Map<string, string>();
  const token = async (owner: string) => {
    const known = tokens.get(owner);
    if (known) return known;
    const scopes = ["submit", "read"] as const;
    const made = await createToken(b.deps.store, { owner, scopes, createdAt: Date.now() });
    tokens.set(owner, made);
    return made;
  };
  const submit = async (owner: string, id: string) => {
    const headers = { authorization: `Bearer ${await token(owner)}` };
    const body = JSON.stringify({ agent: "tested", id, input: INPUT });
    return read(await app.request("/v1/tasks", { method: "POST", headers, body }, bindings));
  };
  const fill = async (owner: string) => {
    for (let i = 0; i < 400; i++) {
      const answer = await submit(owner, `${owner}-${i}`);
      if (answer.status !== 201) return { taken: i, answer };
    }
    throw new Error("nothing ever filled up");
  };
  /** Of an app of its own: what an app found is kept for seconds. */
  const health = async (given: Record<string, string> = {}) =>
    read(
      await createApp({ agents: [{ name: "tested", lanes: 1 }] }).request(
        "/health",
        { headers: given },
        bindings,
      ),
    );
  const metrics = async (owner: string) => {
    const headers = { authorization: `Bearer ${await token(owner)}` };
    return (await read(await app.request("/metrics", { headers }, bindings))).text;
  };
  return {
    ...b,
    bench: b,
    metrics,
    submit,
    fill,
    token,
    health,
    [Symbol.asyncDispose]: async () => {
      await b[Symbol.asyncDispose]();
      await nats.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test("one tenant with inputs of 500 KB can't stop the others; at the whole's limit submits are refused, and what was accepted is done", async () => {
  await using s = await smallServer({
    storeBytes: 18 * MB,
    queueBytes: 20 * MB,
    ownerQuota: { bytes: "50%" },
  });
  expect(await s.health()).toMatchObject({ status: 200, json: { ok: true } });

  // Half of the store is the most of one owner.
  const ann = await s.fill("ann");
  expect(ann.taken).toBeGreaterThanOrEqual(15);
  expect(ann.taken).toBeLessThanOrEqual(18);
  expect(ann.answer).toMatchObject({
    status: 429,
    json: {
      code: "quota_exceeded",
      detail: expect.stringMatching(/^owner:ann has \d+ of the 9000000 bytes of its tasks' documents/),
    },
  });
  expect(Number(ann.answer.headers.get("retry-after"))).toBeGreaterThan(0);
  // The same task again is the same task.
  expect(await s.submit("ann", "ann-0")).toMatchObject({ status: 200, json: { kind: "already" } });
  expect(await s.health()).toMatchObject({ status: 200 });

  // Others go on, up to four fifths of the whole.
  const bob = await s.fill("bob");
  expect(bob.taken).toBeGreaterThanOrEqual(8);
  expect(bob.answer).toMatchObject({
    status: 503,
    json: {
      code: "store_full",
      detail: expect.stringMatching(/submits are refused, so that what was accepted/),
    },
  });
  expect(bob.answer.headers.get("retry-after")).toBe("30");
  expect(await s.submit("bob", "bob-0")).toMatchObject({ status: 200, json: { kind: "already" } });

  const told = await s.health();
  expect(told).toMatchObject({ status: 503, json: { code: "store_full" } });
  expect(told.text).not.toMatch(/\d{6}/);
  const known = await s.health({ authorization: `Bearer ${await s.token("bob")}` });
  expect(known.json?.detail).toMatch(/has \d+ of 18000000 bytes/);

  const metrics = await s.metrics("bob");
  for (const why of ["bytes", "store_full"])
    expect(metrics).toContain(`pawl_submits_refused_total{agent="tested",why="${why}"} 1`);
  expect(metrics).toContain('pawl_store_limit_bytes{agent="tested"} 18000000');

  // What was accepted is journaled and completed in the reserve: all of it.
  await s.drain();
  for (const [owner, { taken }] of [
    ["ann", ann],
    ["bob", bob],
  ] as const)
    for (let i = 0; i < taken; i++)
      expect(await s.task(`${owner}-${i}`)).toMatchObject({ state: "completed" });
  const refused = s.deps.logged
    .filter(({ event }) => event === "submit.refused")
    .map(({ fields }) => fields.why);
  expect(refused).toEqual(["bytes", "store_full"]);
});

test("with the defaults' proportions one tenant with inputs of 500 KB can't fill an agent's queue for the others", async () => {
  const defaults = makeSettings({});
  // A quarter of each, for the test's time: an owner's shares stay what they are.
  const [storeBytes, queueBytes] = [defaults.storeBytes / 4, defaults.queueBytes / 4];
  await using s = await smallServer(
    { storeBytes, queueBytes },
    Math.ceil((storeBytes + queueBytes) / MB) + 1,
  );
  const ann = await s.fill("ann");
  // Half of the queue; her half of the store would have been four times as much.
  expect(ann.taken * 500_000).toBeGreaterThan(0.4 * queueBytes);
  expect(ann.taken * 500_000).toBeLessThan(0.5 * queueBytes);
  expect(ann.answer).toMatchObject({
    status: 429,
    json: {
      code: "quota_exceeded",
      detail: expect.stringMatching(/^owner:ann in \w+ has \d+ of the 16777216 bytes of inputs/),
    },
  });
  expect(Number(ann.answer.headers.get("retry-after"))).toBeGreaterThan(0);
  for (let i = 0; i < 10; i++) expect((await s.submit("bob", `bob-${i}`)).status).toBe(201);
  expect(await s.health()).toMatchObject({ status: 200 });
});

test("from four fifths of a queue on submits are refused, and what was accepted is published, and done, in the rest", async () => {
  await using s = await smallServer({ storeBytes: 30 * MB, queueBytes: 5 * MB, ownerQuota: {} });
  for (const id of ["later-0", "later-1"]) await s.bench.submit(INPUT, { id, at: Date.now() + 60_000 });
  const { taken, answer } = await s.fill("ann");
  expect(taken).toBe(7);
  expect(answer).toMatchObject({
    status: 503,
    json: {
      code: "queue_full",
      detail: expect.stringMatching(/of 5000000 bytes.* from 4000000 on submits are/),
    },
  });
  expect(answer.headers.get("retry-after")).toBe("30");
  // The store has room; what takes no submit is the only agent's only queue.
  expect(await s.health()).toMatchObject({ status: 503, json: { code: "queue_full" } });
  const pass = travel(s.deps);
  pass(61_000);
  // A message of each is published into the reserve.
  expect(await dispatchDue(s.deps, AGENT)).toBe(2);
  expect((await s.deps.bus.usage?.(s.queue))?.bytes).toBeGreaterThan(4_000_000);
  expect(await s.drain()).toEqual({ completed: 9 });
  expect((await s.submit("ann", "ann-again")).status).toBe(201);
});

test("a server without room for the store says which setting to change", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  const config = `jetstream { store_dir: "${folder}", max_file_store: 10MB }`;
  await using nats = await testNats({ folder, config });
  const agent = agentOf(() => 1);
  await expect(bench(nats, "nats-kv", agent)).rejects.toMatchObject({
    code: "setting_invalid",
    message: expect.stringMatching(/no 1073741824 bytes left .* Set PAWL_STORE_BYTES lower, or raise/),
  });
  await expect(
    bench(nats, "nats-kv", agent, { storeBytes: 8 * MB, queueBytes: 4 * MB }),
  ).rejects.toMatchObject({
    code: "bus_refused",
    message: expect.stringMatching(/Set PAWL_QUEUE_BYTES lower, or raise/),
  });
});
