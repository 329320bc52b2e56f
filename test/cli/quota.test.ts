import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { listAudit } from "../../shared/audit/read.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readQuotas } from "../../shared/quota/quotas.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("quotas are set, shown with what is used of them, and cleared; what is wrong ends with 2", async () => {
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  await deps.bus.ensure({ namespace: w.config.settings.namespace, agent: "echo", lane: 0, generation: 1 });
  const run = async (...args: string[]) => {
    const command = pawl(w, ["quota", ...args]);
    return { code: await command.exited, text: command.text() };
  };
  const set = await run("set", "owner:ann", "--tasks", "2", "--bytes", "none", "--json");
  expect([set.code, JSON.parse(set.text)]).toEqual([
    0,
    {
      of: "owner:ann",
      quota: { tasks: 2, bytes: null, queue: "50%" },
      used: { tasks: 0, bytes: 0, submits: 0, usd: 0 },
    },
  ]);
  const work = (id: string) =>
    submit(deps, { agent: "echo", lanes: 1, id, input: {}, meta: { owner: "ann" } });
  await work("a");
  await work("b");
  await expect(work("c")).rejects.toMatchObject({ code: "quota_exceeded" });
  const [list, wrongPart, nobody, nothing] = await Promise.all([
    run("ls"),
    run("set", "owner:ann", "--usd", "lots"),
    run("set", "ann", "--tasks", "1"),
    run("set", "owner:ann"),
  ]);
  expect(list.code).toBe(0);
  expect(list.text).toMatch(/others: owners bytes=50%,queue=50%, agents none/);
  expect(list.text).toMatch(/owner:ann +2 of 2 +- +50% of each +- +-/);
  const apart = pawl(w, ["quota", "ls", "owner:bob"], { PAWL_ISOLATION: "documents" });
  expect(await apart.exited).toBe(0);
  expect(apart.text()).toMatch(/owner:bob +- +50% of each +50% of each/);
  expect([wrongPart.code, wrongPart.text]).toEqual([2, expect.stringMatching(/usd is "lots"; it should be/)]);
  expect([nobody.code, nobody.text]).toEqual([
    2,
    expect.stringMatching(/Write owner:<name> or agent:<name>/),
  ]);
  expect([nothing.code, nothing.text]).toEqual([2, expect.stringMatching(/Say what to limit: --tasks/)]);
  expect(await run("clear", "owner:ann")).toMatchObject({
    code: 0,
    text: expect.stringMatching(/bytes=50%/),
  });
  expect(await readQuotas(deps.store)).toEqual({});
  const { entries } = await listAudit(deps, {}, 10);
  expect(entries.map(({ op, outcome, actor, detail }) => [op, outcome, actor.via, detail])).toEqual([
    ["quota clear", "done", "cli", "owner:ann"],
    ["quota clear", "asked", "cli", "owner:ann"],
    ["quota set", "done", "cli", "owner:ann tasks=2,bytes=none"],
    ["quota set", "asked", "cli", "owner:ann tasks=2,bytes=none"],
  ]);
});
