import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { serve } from "../../shared/runner/serve.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf } from "../support/bench.ts";
import { HOSTILE, MODEL } from "../support/http/dashboard.ts";
import { counting, pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("every failed attempt has its reason, and what was logged and asked is shown, all of it as text", async () => {
  await using s = await pagesStage(nats);
  const model = scripted(() => ({ content: [{ type: "text", text: "ok" }] }));
  Object.assign(s.deps, { model });
  const agent = agentOf(
    async ({ attempt, log, llm }) => {
      log(`${HOSTILE} line of try ${attempt}`, attempt === 1 ? "info" : "warn");
      await llm("ask", { model: MODEL, system: "<b>be brief</b>", prompt: HOSTILE + "x".repeat(9_000) });
      throw new Error(`try ${attempt} broke <b>`);
    },
    { attempts: 2, backoff: { first: "1ms" } },
  );
  const boss = await s.visitor("boss");
  await s.submit({}, { id: "t" });
  await until("t is failed", async () => {
    await s.drain(agent);
    return (await s.task("t")).state === "failed";
  });
  const { text } = await boss.get("/ui/tasks/t");
  expect(text).toMatch(
    /class="reason"><code>handler_failed<\/code> try 1 broke &lt;b&gt; <span class="note">at .*task-page\.test\.ts:\d+:\d+/,
  );
  expect(text).toMatch(
    /class="reason"><code>attempts_exhausted<\/code> Failed 2 times, at last: try 2 broke/,
  );
  expect(text).toContain("line of try 1");
  expect(text).toMatch(/<li class="warn">.*fence 2.*<strong>warn<\/strong>/s);
  expect(text).toContain("[system]\n&lt;b&gt;be brief&lt;/b&gt;");
  expect(text).toMatch(/The beginning is kept, of [\d,]+ bytes\./);
  expect(text).not.toMatch(/<script>window|<b>/);
  expect(text).not.toContain(process.cwd());
  // What the page says of its own: times that a script makes local, with UTC on hover, and what can be copied.
  expect(text).toMatch(/<time datetime="[^"]+Z" data-as="s" title="[\d-]+ [\d:.]+ UTC">/);
  for (const id of ["task-id", "error-text", "input-text"]) {
    expect(text).toContain(`data-copies="${id}"`);
    expect(text).toContain(` id="${id}"`);
  }
  const token = await s.token("boss", ["read", "operate"]);
  const journal = (await s.call(token, "GET", "/v1/tasks/t/journal")).body as { entries: object[] };
  expect(journal.entries[0]).toMatchObject({ n: 1, kind: "intent", asked: { bytes: expect.any(Number) } });
  const logs = (await s.call(token, "GET", "/v1/tasks/t/logs")).body;
  expect(logs).toMatchObject({
    count: 2,
    lines: [
      { level: "info", fence: 1 },
      { level: "warn", fence: 2 },
    ],
  });
});

test("a parent links its children, children their parent, and the family's dollars are added up", async () => {
  await using s = await pagesStage(nats);
  const usage = { input_tokens: 1_000_000, output_tokens: 0 };
  Object.assign(s.deps, {
    lanesOf: () => 1,
    model: scripted(() => ({ content: [{ type: "text", text: "ok" }], usage })),
  });
  const agent = agentOf(async ({ input, submit, llm }) => {
    const { depth } = input as { depth: number };
    await llm("ask", { model: MODEL, prompt: "hello" });
    if (depth === 0) return 0;
    const keys = ["a", "b"];
    const children = await Promise.all(keys.map((key) => submit("tested", { depth: depth - 1 }, { key })));
    await Promise.all(children.map((child) => child.result()));
    return depth;
  });
  await s.submit({ depth: 2 }, { id: "t", meta: { owner: "ann" } });
  const stop = new AbortController();
  const running = serve(s.deps, { name: "tested", agent, mode: "forever", stop: stop.signal });
  await until("t is completed", async () => (await s.task("t")).state === "completed");
  stop.abort(new Error("over"));
  await running;
  const ann = await s.visitor("ann", ["read"]);
  const { store, asked } = counting(s.deps.store);
  Object.assign(s.deps, { store });
  const { text } = await ann.get("/ui/tasks/t");
  const read = [...asked];
  const links = [...text.matchAll(/<tr id="child-(c-[0-9a-f]{40})">/g)].map(([, id]) => id as string);
  expect(links).toHaveLength(2);
  expect(text).toContain("These submitted 4 more.");
  const own = Number(/>Spent<.*?\$([\d.]+)</s.exec(text)?.[1]);
  const family = Number(/>Family<.*?\$([\d.]+)</s.exec(text)?.[1]);
  expect(own).toBeGreaterThan(0);
  expect(family).toBeCloseTo(own * 7, 1);
  // Where no family is added up, dollars are said to be a task's own.
  expect(text).toContain('<th scope="col" class="end">Own dollars</th>');
  const list = (await ann.get("/ui/tasks?agent=tested")).text;
  expect(list).toContain('<th scope="col" class="end">Own dollars</th>');
  expect(list).toContain('data-label="of its own"');
  const page = (await ann.get("/ui/agents/tested")).text;
  expect(page).toContain("own dollars of those that ended");
  for (const one of [list, page]) expect(one).toContain("Own dollars are without those of the tasks");
  // A document and a head of its own, one question for each level's children, and each child's journal.
  expect(read.filter((one) => one === "getMany").length).toBeLessThanOrEqual(3);
  expect(read.filter((one) => one === "getHead").length).toBe(7);
  const child = await ann.get(`/ui/tasks/${links[0]}`);
  expect(child.text).toContain('submitted by <a href="/ui/tasks/t">');
  const bob = await s.visitor("bob", ["read"]);
  expect((await bob.get(`/ui/tasks/${links[0]}`)).status).toBe(404);
});
