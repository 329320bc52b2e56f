import { afterAll, beforeAll, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submitted } from "../../shared/task/create.ts";
import { counting, pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** More than one list looks at. */
const MANY = 12_000;

/** Somebody else's, straight into the bucket. */
async function seed({ nc, settings }: Wired): Promise<void> {
  const one = { agent: "tested", lane: 0, input: {}, inputHash: "h", at: Date.now(), stamp: "s", by: "me" };
  for (let n = 0; n < MANY; n++) {
    const task = submitted({ ...one, id: `t-${n}` }, "Q");
    nc.publish(`$KV.${settings.namespace}-tasks.task.${task.id}`, JSON.stringify(task));
    if (n % 1_000 === 0) await nc.flush();
  }
  await nc.flush();
}

async function seeded() {
  const s = await pagesStage(nats);
  await seed(s.deps);
  const { store, asked } = counting(s.deps.store);
  // 600 a minute: room for 150. A list that looks at 10,000 documents costs 200 more.
  const env = { rateLimit: 600, open: async () => ({ ...s.deps, store }) };
  const lists = () => asked.filter((one) => one.startsWith("list"));
  const get = (token: string, path: string) => s.request(path, { headers: { cookie: `pawl=${token}` } }, env);
  return Object.assign(s, { asked: lists, getAs: get });
}

test.each([
  ["/ui/agents/tested", ["list 1000"]],
  ["/ui", ["list 100", "list 501"]],
])("a token that owns nothing looks through %s once, and pays for it", async (path, lists) => {
  await using s = await seeded();
  const eve = await s.token("eve", ["read"]);
  expect((await s.getAs(eve, path)).status).toBe(200);
  expect(s.asked().toSorted()).toEqual(lists);
  const next = await s.getAs(eve, "/ui/reports");
  expect(next.status).toBe(429);
  expect(Number(next.headers.get("retry-after"))).toBeGreaterThan(lists.length > 1 ? 20 : 4);
});

test("an agent's page says where it has not looked at everything", async () => {
  await using s = await seeded();
  const boss = await s.token("boss", ["operate", "read"]);
  const { status, text } = await s.getAs(boss, "/ui/agents/tested");
  expect([status, s.asked()]).toEqual([200, ["list 1000"]]);
  expect(text).toMatch(/only tasks that changed since <time datetime="[^"]+"[^>]*>[^<]+<\/time> are shown/);
});
