import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { listAudit } from "../../shared/audit/read.ts";
import { pauseOf } from "../../shared/pause/pause.ts";
import { ALL } from "../support/http/api.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("an agent is paused and resumed by page and API: seen everywhere, by whom it may, and in the trail", async () => {
  await using s = await pagesStage(nats);
  const woken: string[] = [];
  Object.assign(s.deps, { trigger: (agent: string) => void woken.push(agent) });
  const [boss, reader, stranger] = [
    await s.visitor("boss"),
    await s.visitor("ann", ["submit", "read"]),
    await s.token("one", ALL, ["other"]),
  ];
  const call = (token: string, verb: string, body: object = {}, agent = "tested") =>
    s.call(token, "POST", `/v1/agents/${agent}/${verb}`, body);
  const metric = async () => (await s.request("/metrics", bearer(boss.token))).text;
  const page = "/ui/agents/tested";
  expect((await boss.get(page)).text).toMatch(/<button id="pause" /);
  expect(await metric()).toContain('pawl_agent_paused{agent="tested"} 0\n');

  const done = await boss.post(`${page}/pause`, { why: "<b>the board</b> is down" });
  expect([done.status, done.headers.get("location")]).toEqual([303, `${page}?done=paused`]);
  const shown = (await boss.get(`${page}?done=paused`)).text;
  expect(shown).toContain("It is paused.");
  expect(shown).toMatch(
    /Paused<\/strong> since .*by boss via dashboard \([^)]+\): &lt;b&gt;the board&lt;\/b&gt; is down/,
  );
  expect(shown).toMatch(/<button id="resume"/);
  expect((await boss.get("/ui")).text).toMatch(/tested<\/a> <span class="note">paused<\/span>/);
  // Who may only read sees it too, and finds no button.
  const seen = (await reader.get(page)).text;
  expect(seen).toContain("Paused</strong>");
  expect(seen).not.toMatch(/id="(resume|pause)"/);
  const list = await s.call(reader.token, "GET", "/v1/agents");
  const agents = list.body.agents as { name: string }[];
  expect(agents.find(({ name }) => name === "tested")).toMatchObject({
    paused: { why: "<b>the board</b> is down" },
  });
  expect(await metric()).toContain('pawl_agent_paused{agent="tested"} 1\n');

  // Paused again, it stays as it was.
  const again = await call(boss.token, "pause", { why: "another reason" });
  const first = await pauseOf(s.deps.store, "tested");
  expect(again).toMatchObject({ status: 200, body: { agent: "tested", paused: first, before: first } });
  expect((await boss.post(`${page}/pause`, {})).headers.get("location")).toBe(`${page}?done=paused-before`);
  for (const [token, status] of [
    [reader.token, 403],
    [stranger, 404],
  ] as const)
    expect((await call(token, "resume")).status).toBe(status);
  expect((await call(boss.token, "pause", {}, "nobody")).status).toBe(404);
  expect((await call(boss.token, "pause", { why: "x".repeat(301) })).status).toBe(422);
  expect((await reader.post(`${page}/resume`, {})).status).toBe(403);
  expect((await boss.post("/ui/agents/nobody/pause", {})).status).toBe(404);
  expect(await pauseOf(s.deps.store, "tested")).toEqual(first);

  expect(await call(boss.token, "resume")).toMatchObject({ status: 200, body: { before: first } });
  expect(woken).toEqual(["tested"]);
  expect((await boss.post(`${page}/resume`, {})).headers.get("location")).toBe(`${page}?done=resumed-before`);
  expect((await boss.get(page)).text).not.toContain("Paused</strong>");
  const { entries } = await listAudit(s.deps, {}, 100);
  const asked = entries
    .filter(({ outcome }) => outcome === "asked")
    .map(({ op, agent, actor }) => [op, agent, actor.via]);
  expect(asked.reverse()).toEqual([
    ["pause", "tested", "dashboard"],
    ["pause", "tested", "api"],
    ["pause", "tested", "dashboard"],
    ["resume", "tested", "api"],
    ["resume", "tested", "dashboard"],
  ]);
  // Its words are with the pause, and not in the trail.
  expect(JSON.stringify(entries)).not.toMatch(/the board|another reason/);
});

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
