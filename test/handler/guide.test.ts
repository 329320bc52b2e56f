import { expect, test } from "vitest";
import { loadAgent } from "../../infra/agents.ts";
import { runAgent } from "../../shared/testing.ts";
import { tempAgents, writeAuthorsCode } from "../support/temp-agents.ts";

const folder = tempAgents();
writeAuthorsCode(folder);

test("the guide's typed answer", async () => {
  const triage = await loadAgent("triage", folder);
  const model = ['{"kind": "praise", "urgent": false}', '{"kind": "other", "urgent": false}'];
  const run = await runAgent(triage, { mail: "Thank you!" }, { model });
  expect(run).toMatchObject({ state: "completed", result: { to: "other" }, spent: { turns: 2 } });
});
