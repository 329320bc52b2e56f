import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import type { Submission } from "../../shared/dispatch/submit.ts";
import { apiStage } from "../support/http/api.ts";
import { counting, pagesStage } from "../support/http/pages.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const fail = () => {
  throw new Error("The mail server is away");
};
const rows = (text: string) => [...text.matchAll(/<tr id="t-([^"]+)"/g)].map(([, id]) => id);

async function withTasks(...some: (Partial<Submission> & { id: string })[]) {
  const s = await pagesStage(nats);
  for (const one of some) await s.submit({}, one);
  return s;
}

test("tasks are found by a part of their id, by a label, by their owner; a whole id leads to its task", async () => {
  await using s = await withTasks(
    { id: "order-77", meta: { owner: "ann", labels: { team: "docs" } } },
    { id: "order-78", meta: { owner: "bob", labels: { team: "sales" } } },
    { id: "Refund-7" },
  );
  const ann = await s.visitor("ann");
  const found = async (query: string) => rows((await ann.get(`/ui/tasks?${query}`)).text).sort();
  expect(await found("q=order")).toEqual(["order-77", "order-78"]);
  expect(await found("q=refund")).toEqual(["Refund-7"]);
  expect(await found("q=team=docs")).toEqual(["order-77"]);
  expect(await found("q=sales")).toEqual(["order-78"]);
  expect(await found("label=team")).toEqual(["order-77", "order-78"]);
  expect(await found("label=team=sales")).toEqual(["order-78"]);
  expect(await found("owner=bob")).toEqual(["order-78"]);
  expect(await found("q=order&owner=ann&agent=tested")).toEqual(["order-77"]);
  expect(await found("q=%3Cscript%3E")).toEqual([]);
  const whole = await ann.get("/ui/tasks?q=order-78");
  expect([whole.status, whole.headers.get("location")]).toEqual([303, "/ui/tasks/order-78"]);
  // What one may not see is not there, by whatever it is looked for.
  const cid = await s.visitor("cid", ["read"]);
  expect(rows((await cid.get("/ui/tasks?q=order")).text)).toEqual([]);
  expect(rows((await cid.get("/ui/tasks?owner=ann")).text)).toEqual([]);
  expect((await cid.get("/ui/tasks?q=order-78")).status).toBe(200);
});

test("the API finds by the same words, with no more than was asked for, and all of it page by page", async () => {
  await using s = await apiStage(nats);
  for (let n = 0; n < 12; n++)
    await s.submit({}, { id: `t-${n}`, meta: { owner: "ann", labels: { odd: n % 2 ? "yes" : "no" } } });
  const token = await s.token("ann");
  const ids: string[] = [];
  let cursor = "";
  for (let pages = 0; pages < 20; pages++) {
    const { body } = await s.call(token, "GET", `/v1/tasks?label=odd=yes&limit=4${cursor}`);
    const tasks = body.tasks as { id: string }[];
    expect(tasks.length).toBeLessThanOrEqual(4);
    ids.push(...tasks.map(({ id }) => id));
    if (body.cursor === undefined) break;
    cursor = `&cursor=${encodeURIComponent(String(body.cursor))}`;
  }
  expect(ids.sort()).toEqual(["t-1", "t-11", "t-3", "t-5", "t-7", "t-9"]);
  expect((await s.call(token, "GET", "/v1/tasks?owner=bob")).body.tasks).toEqual([]);
});

test("dead letters are found by their reason", async () => {
  await using s = await pagesStage(nats, fail);
  await s.submit({}, { id: "bad" });
  await s.drain();
  const ann = await s.visitor("ann");
  const [{ error }] = (await s.deps.store.list({ state: "failed" }, 5)).tasks as never as [
    { error: { code: string } },
  ];
  expect(rows((await ann.get(`/ui/dead-letters?error=${error.code}`)).text)).toEqual(["bad"]);
  expect(rows((await ann.get("/ui/dead-letters?error=budget_exceeded")).text)).toEqual([]);
});

test("lists change by themselves; an older page stays as it is", async () => {
  await using s = await withTasks({ id: "a" });
  const ann = await s.visitor("ann");
  for (const path of ["/ui/tasks", "/ui/dead-letters", "/ui/tasks?state=running"])
    expect((await ann.get(path)).text).toContain('data-live="/ui/live"');
  expect((await ann.get("/ui/tasks?cursor=1000")).text).toContain('data-live=""');
});

describe("the overview's counts", () => {
  const figure = (text: string, state: string) =>
    new RegExp(`id="tile-${state}".*?class="figure">([^<]*)<`, "s").exec(text)?.[1];

  test("go beyond what is listed", async () => {
    await using s = await pagesStage(nats, fail);
    for (let n = 0; n < 25; n++) await s.submit({}, { id: `t-${n}` });
    await s.drain();
    const ann = await s.visitor("ann");
    const { text } = await ann.get("/ui");
    expect(figure(text, "failed")).toBe("25");
    expect(text).not.toContain("A + means");
  });

  test("end at a number that says so, where they would be of listed tasks", async () => {
    await using s = await pagesStage(nats, fail);
    const tasks = async (from: number, to: number) => {
      for (let n = from; n < to; n += 50)
        await Promise.all(
          Array.from({ length: Math.min(50, to - n) }, (_, i) => s.submit({}, { id: `t-${n + i}` })),
        );
      await s.drain();
    };
    await tasks(0, 500);
    const ann = await s.visitor("ann");
    const whole = (await ann.get("/ui")).text;
    expect(figure(whole, "failed")).toBe("500");
    expect(whole).not.toContain("A + means");
    await tasks(500, 501);
    const bob = await s.visitor("bob", ["read", "operate"], ["tested"]);
    const { text } = await bob.get("/ui");
    expect(figure(text, "failed")).toBe("500+");
    expect(text).toContain("A + means at least so many: counting stops at 500 tasks of a state");
  });

  test.runIf(hasEmulator).each(["firestore-rest", "firestore"] as const)(
    "are asked of a store that counts, instead of the tasks themselves: %s",
    async (kind) => {
      await using s = await apiStage(nats, kind, fail);
      for (let n = 0; n < 12; n++) await s.submit({}, { id: `t-${n}`, meta: { owner: "ann" } });
      await s.drain();
      const { store, asked } = counting(s.deps.store);
      const token = await s.token("ann", ["read", "operate"]);
      const env = { open: async () => ({ ...s.deps, store }), log: s.deps.log };
      const answer = await s.app.request("/ui", { headers: { cookie: `pawl=${token}` } }, env);
      expect(figure(await answer.text(), "failed")).toBe("12");
      expect(asked.filter((one) => one === "count")).toHaveLength(4);
      expect(asked).not.toContain("list 501");
      expect(await store.count?.({ state: "failed" }, 5)).toBe(5);
      expect(await store.count?.({ owner: "bob" }, 5)).toBe(0);
      expect(await store.count?.({ agents: ["tested", "other"], state: "failed" }, 100)).toBe(12);
    },
  );
});

test("an agent's page has its queue, its charts and why tasks failed; of another agent there is none", async () => {
  await using s = await pagesStage(nats, fail);
  for (const id of ["a", "b"]) await s.submit({}, { id });
  await s.drain();
  const ann = await s.visitor("ann");
  const { text } = await ann.get("/ui/agents/tested?span=1h");
  for (const label of [
    "Tasks ended a minute",
    "Submit to completion, p95",
    "Failed",
    "Own dollars of tasks that ended",
  ])
    expect(text).toContain(`aria-label="${label}.`);
  expect(text).toMatch(
    /error=[a-z_]+"><code>[a-z_]+<\/code><\/a><\/th><td class="end" data-label="failed">2</,
  );
  expect((await ann.get("/ui/agents/nobody")).status).toBe(404);
  const other = await s.visitor("eve", ["read"], ["other"]);
  expect((await other.get("/ui/agents/tested")).status).toBe(404);
});

test("an agent's page that can't look at all of its tasks says since when it did, and shows no zeros for before", async () => {
  await using s = await pagesStage(nats);
  const pass = travel(s.deps);
  /** All of them end in the same moment. */
  const ended = async (from: number, to: number) => {
    for (let n = from; n < to; n += 50)
      await Promise.all(
        Array.from({ length: Math.min(50, to - n) }, async (_, i) => {
          await s.submit({}, { id: `t-${n + i}` });
          await cancel(s.deps, `t-${n + i}`);
        }),
      );
  };
  await ended(0, 1_010);
  pass(6 * 3_600_000);
  await ended(1_010, 1_030);
  const ann = await s.visitor("ann");
  const page = async (span: string) => {
    const { text } = await ann.get(`/ui/agents/tested?span=${span}`);
    const [, tile] = /class="figure">([^<]*)<\/span> ended</.exec(text) ?? [];
    const [, told = ""] = /aria-label="Failed\. ([^"]*)"/.exec(text) ?? [];
    return { text, tile, parts: told.split(", ").map((one) => one.replace(/^[\d:-]+: /, "")) };
  };
  const day = await page("24h");
  expect(day.tile).toBe("1,000");
  const [, since = ""] = /only tasks that changed since <time datetime="([^"]+)"/.exec(day.text) ?? [];
  // One of those that ended before the hours passed.
  expect(Math.abs(Date.now() - Date.parse(since))).toBeLessThan(120_000);
  // Two hours each: of the twelve parts, the last four or five are not before it.
  expect(day.parts).toHaveLength(12);
  expect(day.parts.slice(0, 7)).toEqual(Array(7).fill("not counted"));
  expect(day.parts.slice(-3)).toEqual(Array(3).fill("0"));
  // What ended within the hour was looked at whole, however many ended before.
  const hour = await page("1h");
  expect([hour.tile, hour.parts.includes("not counted")]).toEqual(["20", false]);
  expect(hour.text).not.toContain("There is more than is looked at");
});
