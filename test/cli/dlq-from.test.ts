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
  join(agents, "redone.ts"),
  `import { defineAgent, Fatal } from "${agentModule}";
export default defineAgent({
  run: async ({ step, effect }) => {
    const read = await step("read", () => process.env.RUN);
    const filed = await effect("file", { run: () => process.env.RUN });
    if (process.env.RUN === "1") throw new Fatal("not yet");
    return { read, filed };
  },
});\n`,
);

test("one dead letter is redriven from an entry of its journal, and what it filed stays filed", async () => {
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "redone", lane: 0 }));
  const run = async (args: string[], RUN = "1") => {
    const command = pawl(w, args, { PAWL_AGENTS_DIR: agents, RUN });
    return { code: await command.exited, text: command.text() };
  };
  await submit(deps, { agent: "redone", lanes: 1, id: "t", input: {} });
  await run(["run", "redone", "--drain"]);
  for (const wrong of [
    ["--all", "--from", "read"],
    ["t", "--from", "read", "--from-scratch"],
    ["t", "--from", "read", "--resume"],
  ])
    expect((await run(["dlq", "redrive", ...wrong])).code, wrong.join(" ")).toBe(2);
  expect(await run(["dlq", "redrive", "t", "--from", "draft"])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`no entry "draft". It has read#1, file#1`),
  });
  expect(await run(["dlq", "redrive", "t", "--from", "read#1"])).toMatchObject({ code: 0 });
  await run(["run", "redone", "--drain"], "2");
  expect((await deps.store.get("t"))?.task).toMatchObject({
    state: "completed",
    result: { read: "2", filed: "1" },
  });
  const { text } = await run(["events", "t"]);
  expect(text).toMatch(/redriven redrive 2 {2}forgets 1\n/);
  expect(text).toMatch(/transition .* redrive .* from read#1\n/);
});
