import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { laneOf, streamName } from "../../shared/task/names.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { tempAgents } from "../support/temp-agents.ts";

const agents = tempAgents();
const { agentModule } = inject("programs");
writeFileSync(
  join(agents, "one-lane.ts"),
  `import { defineAgent, Fatal } from "${agentModule}";
export default defineAgent({
  run({ input, waitFor }) {
    if (input.what === "wait") return waitFor("paid");
    throw new Fatal("for good");
  },
});\n`,
);

test("what lanes that went hold is named until a runner has drained it, and goes on in one that is left", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const run = async (...args: string[]) => {
    const command = pawl(w, args, { PAWL_AGENTS_DIR: agents });
    return { code: await command.exited, text: command.text() };
  };
  const agent = "one-lane";
  const lane = laneOf("t", 8);
  expect(lane).toBeGreaterThan(0);
  const queue = queueOf(deps, { agent, lane });
  await deps.bus.ensure(queue);
  const more = { agent, lanes: 8, orderingKey: "t" };
  await submit(deps, { ...more, id: "waits", input: { what: "wait" } });
  await submit(deps, { ...more, id: "fails", input: {} });

  const stream = streamName(queue);
  const line = `one-lane: 2 left in ${stream}, of a former lane ${lane}: its runner drains it`;
  expect((await run("agents")).text.split("\n")).toContain(line);
  expect((await run("top")).text.split("\n")).toContain(line);
  const drained = await run("run", "one-lane", "--drain", "--json");
  const said = drained.text.split("\n").find((one) => one.includes("lanes.left"));
  expect(JSON.parse(said ?? "{}")).toMatchObject({ level: "warn", queue: stream, lane, messages: 2 });
  expect(JSON.parse((await run("agents", "--json")).text)).toMatchObject({ agents: [{ left: [] }] });

  const home = streamName(queueOf(deps, { agent, lane: 0 }));
  expect(await run("signal", "waits", "paid")).toMatchObject({ code: 0, text: "waits is dispatched\n" });
  expect((await deps.store.get("waits"))?.task).toMatchObject({ state: "dispatched", queue: home });
  expect(await run("dlq", "redrive", "fails")).toMatchObject({ code: 0 });
  expect((await deps.store.get("fails"))?.task).toMatchObject({ state: "dispatched", queue: home });
});
