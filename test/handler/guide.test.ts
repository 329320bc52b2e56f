import { afterEach, expect, test, vi } from "vitest";
import { loadAgent } from "../../infra/agents.ts";
import { asks, runAgent } from "../../shared/testing.ts";
import { tempAgents, writeAuthorsCode } from "../support/temp-agents.ts";

const folder = tempAgents();
writeAuthorsCode(folder);

afterEach(() => {
  vi.unstubAllGlobals();
});

test("the guide's typed answer", async () => {
  const triage = await loadAgent("triage", folder);
  const model = ['{"kind": "praise", "urgent": false}', '{"kind": "other", "urgent": false}'];
  const run = await runAgent(triage, { mail: "Thank you!" }, { model });
  expect(run).toMatchObject({ state: "completed", result: { to: "other" }, spent: { turns: 2 } });
});

test("the guide's tool that shows a picture, beside a search", async () => {
  const proofread = await loadAgent("proofread", folder);
  vi.stubGlobal("fetch", async () => new Response("PNG"));
  const model = [asks(["screenshot", {}]), "None."];
  const run = await runAgent(proofread, { page: "https://example.com/" }, { model });
  expect(run).toMatchObject({ state: "completed", result: { mistakes: "None." } });
  expect(JSON.stringify(run.requests[1]?.messages)).toContain(`"data":"${btoa("PNG")}"`);
  expect(run.requests[0]?.tools).toMatchObject([{ name: "screenshot" }, { name: "web_search" }]);
});
