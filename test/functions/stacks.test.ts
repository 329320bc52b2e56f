import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildFunction } from "../../infra/build/build.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { ROOT } from "../../infra/project.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { observer } from "../support/observer.ts";
import { deploy, post, varsOf } from "../support/servers/platforms.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
writeFileSync(
  join(agents, "prices.ts"),
  `interface Price { readonly usd: number }

export function total(prices: readonly (Price | undefined)[]): number {
  return prices.reduce((sum, price) => {
    if (!price) throw new Error("a price is missing");
    return sum + price.usd;
  }, 0);
}
`,
);
writeFileSync(
  join(agents, "broken.ts"),
  `import { defineAgent } from "${SHARED}/agent.ts";
import { total } from "./prices.ts";

export default defineAgent({
  limits: { attempts: 1 },
  run: ({ step }) =>
    step("add", () => total([{ usd: 1 }, undefined])),
});
`,
);

test.each(TARGETS)("a minified bundle says where in the author's sources it threw: %s", async (target) => {
  const w = world(nats, "nats-kv");
  await using deps = await observer(w);
  await deps.bus.ensure(queueOf(deps, { agent: "broken", lane: 0 }));
  const built = await buildFunction("broken", target, agents, join(agents, "out"));
  await using deployed = await deploy(built, varsOf(w, target));
  await submit(deps, { agent: "broken", lanes: 1, id: "t", input: {} });
  expect((await post(deployed.url)).status).toBe(200);
  const task = (await deps.store.get("t"))?.task;
  if (task?.state !== "failed") throw new Error(`t is ${task?.state}`);
  const lines = task.error.stack?.split("\n").map((line) => line.trim()) ?? [];
  const folder = agents.slice(ROOT.length);
  expect(lines[0]).toBe(`at ${folder}/prices.ts:5`);
  expect(lines.join("\n")).toContain(`${folder}/prices.ts:4`);
  expect(lines.join("\n")).toContain(`${folder}/broken.ts:7`);
  expect(task.history.at(-1)?.error).toMatchObject({ code: "attempts_exhausted", where: lines[0] });
  expect(JSON.stringify(task)).not.toContain(ROOT);
  // The map is kept beside, and nobody serves it.
  for (const path of ["/index.js.map", "/assets/pawl.js.map", "/index.js"])
    expect((await fetch(`${deployed.url}${path}`)).status).toBeGreaterThanOrEqual(400);
});
