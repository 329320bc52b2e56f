import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
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

test("the guide's tool that asks first", async () => {
  const refunds = await loadAgent("refunds", folder);
  const paid: unknown[] = [];
  vi.stubGlobal("fetch", async (_: string, { body }: { body: string }) => {
    paid.push(JSON.parse(body));
    return Response.json({ ok: true });
  });
  const input = { complaint: "It broke.", till: "https://till.example.com/" };
  const model = (euros: number) => [asks(["refund", { order: "o1", euros }]), "Dear customer"];
  expect(await runAgent(refunds, input, { model: model(20) })).toMatchObject({ state: "completed" });
  expect(paid).toEqual([{ order: "o1", euros: 20 }]);
  const answered = await runAgent(refunds, input, { model: model(80), approvals: { refund: true } });
  expect([answered.result, paid.length]).toEqual([{ letter: "Dear customer" }, 2]);
  const late = await runAgent(refunds, input, { model: model(80) });
  expect([late.state, late.elapsed, paid.length]).toEqual(["completed", 2 * 86_400_000, 2]);
});

test("the guide's MCP server", async () => {
  const clerk = await loadAgent("clerk", folder);
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "crm", version: "1" });
    const inputSchema = z.object({ customer: z.string() });
    server.registerTool("find_customer", { inputSchema, annotations: { readOnlyHint: true } }, () => ({
      content: [],
    }));
    server.registerTool("create_order", { inputSchema }, () => ({
      content: [{ type: "text", text: "order 7" }],
    }));
    return server;
  });
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => handler.fetch(new Request(url, init)));
  const model = [asks(["crm_create_order", { customer: "Ada" }]), "Done."];
  const approvals = { crm_create_order: true };
  const run = await runAgent(clerk, { wish: "One lamp" }, { model, approvals });
  expect(run).toMatchObject({ state: "completed", result: { said: "Done." } });
  expect(JSON.stringify(run.requests[1]?.messages)).toContain("order 7");
});
