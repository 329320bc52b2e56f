import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildFunction } from "../../infra/build/build.ts";
import { bundleLimit } from "../../infra/build/limit.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import { deploy } from "../support/servers/platforms.ts";
import { SHARED, tempAgents, writeAuthorsCode } from "../support/temp-agents.ts";

const agents = tempAgents();
const out = join(agents, "dist");
writeAuthorsCode(agents);

function agent(name: string, body: string, before = ""): void {
  const source = `${before}import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent(${body});\n`;
  writeFileSync(join(agents, `${name}.ts`), source);
}

test.each(TARGETS)(
  "the guide's shared code and its package are in the bundles of those who import them: %s",
  async (target) => {
    const ticket = await buildFunction("ticket", target, agents, out);
    expect(ticket.inputs.filter((path) => path.includes("/lib/jira.ts"))).toHaveLength(1);
    const next = await buildFunction("next-run", target, agents, out);
    expect(next.inputs.some((path) => path.includes("node_modules/croner/"))).toBe(true);
    expect(next.inputs.filter((path) => path.includes("/lib/jira"))).toEqual([]);
  },
);

test("a package in CommonJS that asks for Node's own modules runs in workerd", async () => {
  const home = join(agents, "node_modules", "old-style");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), '{ "name": "old-style", "main": "index.js" }');
  writeFileSync(
    join(home, "index.js"),
    `const { createHash } = require("crypto");
const { inherits } = require("node:util");
module.exports = (text) => typeof inherits + createHash("sha256").update(text).digest("hex");
console.log("old-style says " + module.exports("x"));\n`,
  );
  agent("old", '{ run: () => hash("y") }', 'import hash from "old-style";\n');
  await using deployed = await deploy(await buildFunction("old", "cloudflare", agents, out), {});
  expect((await fetch(`${deployed.url}/nowhere`)).status).toBe(404);
  expect(deployed.log()).toContain("old-style says function2d711642b726b044");
});

test("a file in agents/ that is no agent is told where shared code belongs", async () => {
  writeFileSync(join(agents, "dates.ts"), "export const today = 1;\n");
  await expect(buildFunction("dates", "gcp", agents, out)).rejects.toThrow(
    `Code that agents share belongs into ${join(agents, "lib")}`,
  );
});

test("the limit of a bundle for Workers is raised in package.json, and the refusal says how", async () => {
  const noise = Array.from({ length: 24_000 }, () => Math.random().toString(36)).join("");
  writeFileSync(join(agents, "noise.json"), JSON.stringify(noise));
  agent("noisy", "{ run: () => noise }", 'import noise from "./noise.json" with { type: "json" };\n');
  const manifest = join(agents, "package.json");
  const build = (pawl: object) => {
    writeFileSync(manifest, JSON.stringify(pawl));
    return buildFunction("noisy", "cloudflare", agents, out, { manifest });
  };
  const refusal = await build({}).catch((error: Error) => error);
  expect(refusal).toMatchObject({
    code: "bundle_too_large",
    message: expect.stringMatching(
      /^noisy for Workers has \d+ KiB gzipped; 256 is the most. Largest inside: .*noise.json.*"pawl": \{ "bundleLimitKiB": 512 \}$/,
    ),
  });
  expect(await build({ pawl: { bundleLimitKiB: 512 } })).toMatchObject({ limit: 512 });
  await expect(build({ pawl: { bundleLimitKiB: 280 } })).rejects.toThrow("280 is the most");
});

test.each(["1 MiB", 0, -1, 1.5, 10_241, null])("a limit that is none is refused: %j", (bundleLimitKiB) => {
  expect(() => bundleLimit(JSON.stringify({ pawl: { bundleLimitKiB } }))).toThrow(
    /pawl.bundleLimitKiB in package.json is .*; it should be a whole number from 1 to 10240/,
  );
});
