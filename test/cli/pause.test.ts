import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { tempAgents } from "../support/temp-agents.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
const { agentModule } = inject("programs");
writeFileSync(
  join(agents, "quiet.ts"),
  `import { defineAgent } from "${agentModule}";\nexport default defineAgent({ run: ({ id }) => id });\n`,
);

test("pause and resume: said everywhere, by whom and why; what waits is done when it is resumed", async () => {
  // Kept with the agent's own documents: its runner may reach nothing else.
  const w = world(nats, "nats-kv", { isolation: "documents" });
  await using deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "quiet", lane: 0 }));
  const run = async (...args: string[]) => {
    const command = pawl(w, args, { PAWL_AGENTS_DIR: agents, PAWL_ACTOR: "jo" });
    return { code: await command.exited, text: command.text() };
  };
  await submit(deps, { agent: "quiet", lanes: 1, id: "t", input: {} });
  expect(await run("pause", "quiet", "--why", "the board\nis down")).toEqual({
    code: 0,
    text: "quiet is paused: within 5 s nothing new begins. pawl resume quiet ends it\n",
  });
  const since = /since \S+Z by jo via cli: the board is down/;
  const [again, list, top, status, json, drained, nobody, wrong] = await Promise.all([
    run("pause", "quiet"),
    run("agents"),
    run("top", "--once"),
    run("status", "t"),
    run("status", "t", "--json"),
    run("run", "quiet", "--drain"),
    run("pause", "nobody"),
    run("pause", "quiet", "--why", "x".repeat(301)),
  ]);
  expect(again).toMatchObject({ code: 0, text: expect.stringMatching(/^quiet was paused already, since/) });
  for (const { text } of [again, list, top, status]) expect(text).toMatch(since);
  expect(list.text).toMatch(/quiet: PAUSED since .* \(pawl resume quiet\)/);
  expect(JSON.parse(json.text)).toMatchObject({ state: "dispatched", paused: { by: "jo via cli" } });
  expect(drained.code).toBe(0);
  expect(drained.text).toMatch(/agent\.paused agent=quiet .*why="the board/);
  expect(drained.text).toContain("quiet: nothing to do\n");
  expect([nobody.code, wrong.code]).toEqual([2, 2]);
  expect(await run("resume", "quiet")).toMatchObject({
    code: 0,
    text: expect.stringMatching(/^quiet goes on\. It was paused since/),
  });
  expect(await run("resume", "quiet", "--json")).toEqual({ code: 0, text: '{"agent":"quiet"}\n' });
  expect((await run("run", "quiet", "--drain")).text).toContain("quiet: 1 completed\n");
  expect((await run("audit", "--op", "pause")).text).toMatch(/pause +quiet {2}done {2}by jo via cli/);
});
