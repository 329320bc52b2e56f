import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadAgent } from "../../infra/agents.ts";
import { buildFunction } from "../../infra/build/build.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { observer } from "../support/observer.ts";
import { deploy, post, varsOf } from "../support/servers/platforms.ts";
import { CLI, startProcess } from "../support/servers/runners.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

const agents = tempAgents();
const JIRA_TOKEN = 'jira-token/with "quotes" & more';

writeFileSync(
  join(agents, "ticket.ts"),
  `import { defineAgent, Fatal } from "${SHARED}/agent.ts";
// Read when the module is loaded, as many packages do it.
const loaded = process.env.JIRA_TOKEN;
export default defineAgent({
  secrets: ["JIRA_TOKEN"],
  async run({ input, log, effect }) {
    log("using " + process.env.JIRA_TOKEN);
    if (input.fails === "an effect")
      await effect("file", { run: () => { throw new Error("401 for " + process.env.JIRA_TOKEN); }, verify: () => ({}) });
    if (input.fails) throw new Fatal("refused: " + JSON.stringify({ token: process.env.JIRA_TOKEN }));
    return { length: process.env.JIRA_TOKEN?.length, same: loaded === process.env.JIRA_TOKEN };
  },
});
`,
);

describe.each(TARGETS)("an agent's secret: %s", (target) => {
  test("is in process.env, in no log, in no error and in no journal; without it nothing is claimed", async () => {
    await using nats = await testNats();
    const w = world(nats, "nats-kv");
    await using deps = await observer(w);
    await deps.bus.ensure(queueOf(deps, { agent: "ticket", lane: 0 }));
    const built = await buildFunction("ticket", target, agents, join(agents, "dist"));
    const file = (id: string, input = {}) => submit(deps, { agent: "ticket", lanes: 1, id, input });
    const task = async (id: string) => (await deps.store.get(id))?.task;
    await file("reads");
    {
      await using without = await deploy(built, varsOf(w, target));
      const answer = await post(without.url);
      expect([answer.status, await answer.json()]).toEqual([
        500,
        expect.objectContaining({ code: "secret_missing", detail: expect.stringContaining("JIRA_TOKEN") }),
      ]);
      expect(await task("reads")).toMatchObject({ state: "dispatched", attempts: 0, fence: 0 });
    }
    await using deployed = await deploy(built, varsOf(w, target, { JIRA_TOKEN }));
    await file("fails", { fails: true });
    await file("unsure", { fails: "an effect" });
    expect((await post(deployed.url)).status).toBe(200);
    expect(await task("reads")).toMatchObject({
      state: "completed",
      result: { length: JIRA_TOKEN.length, same: true },
    });
    expect(await task("fails")).toMatchObject({
      state: "failed",
      error: { message: 'refused: {"token":"[secret JIRA_TOKEN]"}' },
    });
    const journal = JSON.stringify([await task("unsure"), await deps.store.getHead("unsure")]);
    expect(journal).toContain('"why":"401 for [secret JIRA_TOKEN]"');
    expect(journal).not.toContain("jira-token");
    expect(deployed.log()).toContain("using [secret JIRA_TOKEN]");
    expect(deployed.log()).not.toContain("jira-token");
  });
});

test("pawl run ends with 2 and a name before it connects", async () => {
  const run = startProcess([CLI, "run", "ticket"], {
    PAWL_AGENTS_DIR: agents,
    NATS_URL: "nats://127.0.0.1:1",
    PAWL_STORE: "nats-kv",
  });
  expect(await run.exited).toBe(2);
  expect(run.text()).toContain("ticket declares JIRA_TOKEN in its secrets, and it is not set here");
});

test.each([
  ['"JIRA_TOKEN"', 'secrets is "JIRA_TOKEN"; it should be a list of 32 names at most'],
  ['["jira-token"]', 'secrets[0] is "jira-token"; it should be a variable\'s name'],
  ['["PAWL_TOKEN"]', "PAWL_… is Pawl's own"],
  ['["A_TOKEN", "A_TOKEN"]', "secrets[1]"],
  ['["ANTHROPIC_API_KEY"]', "secrets: ANTHROPIC_API_KEY is Pawl's own"],
  ['["PORT"]', "secrets: PORT is the platform's own"],
])("a wrong list of secrets is refused by file and field: %s", async (secrets, said) => {
  const name = `wrong-${Math.random().toString(36).slice(2)}`;
  const body = `import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent({ secrets: ${secrets}, run: () => 1 });\n`;
  writeFileSync(join(agents, `${name}.ts`), body);
  await expect(loadAgent(name, agents)).rejects.toMatchObject({
    code: "agent_invalid",
    message: expect.stringContaining(said),
  });
});
