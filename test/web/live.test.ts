import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

type Stage = Awaited<ReturnType<typeof pagesStage>>;

/** Server-sent events as they come, with when they came. */
async function listen(s: Stage, token: string, path: string) {
  const headers = { cookie: `pawl=${token}` };
  const answer = await s.app.request(path, { headers }, { open: async () => s.deps, log: s.deps.log });
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const heard: { kind: string; at: number }[] = [];
  const over = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      for (const [, kind] of new TextDecoder().decode(part.value).matchAll(/^event: (\w+)$/gm))
        heard.push({ kind: kind as string, at: Date.now() });
  })();
  return { heard, over, leave: () => reader.cancel() };
}

const passed = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("the overview is told that something changed, once a second at most", async () => {
  await using s = await pagesStage(nats);
  const boss = await s.visitor("boss");
  const begun = Date.now();
  const { heard, leave } = await listen(s, boss.token, "/ui/live");
  const crowd = setInterval(() => s.deps.bus.announce({ id: "x", agent: "tested" }), 10);
  await until("it is told of it again", async () => heard.length >= 3);
  clearInterval(crowd);
  await leave();
  expect(heard.length).toBeLessThanOrEqual(1 + (Date.now() - begun) / 1_000);
  const told = heard.length;
  s.deps.bus.announce({ id: "x", agent: "tested" });
  await passed(1_200);
  expect(heard.length).toBe(told);
});

test("who sees only their own tasks hears nothing of others'", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann", ["read"]);
  const { heard, leave } = await listen(s, ann.token, "/ui/live");
  s.deps.bus.announce({ id: "x", agent: "tested" });
  await passed(500);
  await leave();
  expect(heard).toEqual([]);
});

test("a task's page hears what it has not shown yet, up to the end", async () => {
  await using s = await pagesStage(nats);
  const boss = await s.visitor("boss");
  await s.submit({}, { id: "t" });
  const { text } = await boss.get("/ui/tasks/t");
  const path = /data-live="([^"]+)"/.exec(text)?.[1] ?? "";
  expect(path).toMatch(/^\/ui\/tasks\/t\/live\?after=/);
  const { heard, over } = await listen(s, boss.token, path);
  await s.drain();
  await over;
  // Its submit was on the page.
  expect(heard.map(({ kind }) => kind)).toEqual(["transition", "transition", "end"]);
});
