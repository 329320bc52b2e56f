import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildFunction } from "../../infra/build/build.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import { ROOT } from "../../infra/project.ts";
import { GCP } from "../support/deploying.ts";
import { bundle } from "../support/servers/platforms.ts";
import { CLI, startProcess } from "../support/servers/runners.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

const agents = tempAgents();

function agent(name: string, body: string, before = ""): void {
  const source = `${before}import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent(${body});\n`;
  writeFileSync(join(agents, `${name}.ts`), source);
}

test.each(TARGETS)(
  "a bundle has the chosen agent's code and no other's, with its map beside: %s",
  async (target) => {
    const { inputs, file, gzip, bytes } = await bundle("walker", target);
    const ours = inputs.filter((path) => path.includes("support/agents/"));
    expect(ours).toEqual(["test/support/agents/walker.ts"]);
    expect(inputs.filter((path) => path.startsWith("infra/"))).toEqual([]);
    const map = JSON.parse(readFileSync(`${file}.map`, "utf8")) as { sources: string[] };
    expect(map.sources.some((source) => source.endsWith("shared/runner/claim.ts"))).toBe(true);
    expect(readFileSync(file, "utf8")).toMatch(/sourceMappingURL=index.js.map\s*$/);
    expect(gzip).toBeLessThan(bytes);
    expect(gzip).toBeLessThan(220 * 1024);
  },
);

test.each(TARGETS)(
  "functions without an agent carry no agent's code, but the API those with a schema: %s",
  async (target) => {
    for (const name of ["dispatch", "reconcile"]) {
      const { inputs } = await bundle(name, target);
      expect(
        inputs.filter((path) => /^(agents|test\/support)\/|anthropic/.test(path)),
        name,
      ).toEqual([]);
    }
    agent("strict", "{ input: z.object({ n: z.number() }), run: () => 1 }", 'import * as z from "zod";\n');
    agent("easy", "{ run: () => 1 }");
    const { inputs, uncarried } = await buildFunction("api", target, agents, join(agents, "dist"));
    expect(inputs.filter((path) => /agents-[^/]*\/(strict|easy)\.ts$|anthropic/.test(path))).toEqual([
      expect.stringMatching(/\/strict\.ts$/),
    ]);
    expect(uncarried).toEqual([]);
  },
);

test("what Google installs beside a bundle is what was tested", async () => {
  const { folder } = await bundle("walker", "gcp");
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const written = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  expect(written).toMatchObject({ type: "module", main: "index.js" });
  for (const [name, version] of Object.entries(written.dependencies))
    expect(devDependencies[name]).toBe(version);
  expect(Object.keys(written.dependencies)).toHaveLength(2);
});

test("an agent too large for Workers is refused, and what takes most is named", async () => {
  const noise = Array.from({ length: 24_000 }, () => Math.random().toString(36)).join("");
  writeFileSync(join(agents, "noise.json"), JSON.stringify(noise));
  agent(
    "large",
    "{ run: () => [noise, z.string()] }",
    `import { z } from "zod";\nimport noise from "./noise.json" with { type: "json" };\n`,
  );
  const build = buildFunction("large", "cloudflare", agents, join(agents, "dist"));
  await expect(build).rejects.toMatchObject({
    code: "bundle_too_large",
    message: expect.stringMatching(
      /large for Workers has \d+ KiB gzipped; 256 is the most.*noise.json.*import \* as z from "zod"/,
    ),
  });
});

test.each([
  ["{ run: 7 }", "run is 7"],
  ["{ run: () => 1, limits: { lanes: 0 } }", "limits.lanes is 0"],
  ["{ run: () => 1, limits: { timeout: 'soon' } }", 'limits.timeout is "soon"'],
  ["{ run: () => 1, version: 1.5 }", "version is 1.5"],
  ["{ run: () => 1, retries: 3 }", "retries is 3"],
])("a wrong definition fails at build, by file and field: %s", async (body, field) => {
  agent("wrong", body);
  const build = startProcess([CLI, "build", "wrong"], { PAWL_AGENTS_DIR: agents });
  expect(await build.exited).toBe(2);
  expect(build.text()).toContain(`${join(agents, "wrong.ts")}: ${field}`);
});

test("the command prints the size, and --json says more", async () => {
  agent("small", "{ run: () => 1 }");
  const env = { PAWL_AGENTS_DIR: agents, PAWL_RUN_SECRET: "never-in-a-bundle-at-all" };
  const build = startProcess([CLI, "build", "small", "--target", "gcp"], env);
  expect(await build.exited).toBe(0);
  expect(build.text()).toMatch(/^dist\/gcp\/small\/index.js {2}\d+ KiB, \d+ KiB gzipped$/m);
  // In a folder with settings, what the doctor says of them.
  const folder = mkdtempSync(join(tmpdir(), "pawl-build-"));
  writeFileSync(join(folder, "gcp.env"), `${GCP("tls://nats.test")}\nPAWL_DUPLICATE_WINDOW=10s\n`);
  const json = startProcess([CLI, "build", "small", "--target", "gcp", "--json"], env, folder);
  expect(await json.exited).toBe(0);
  rmSync(folder, { recursive: true });
  expect(JSON.parse(json.text())).toMatchObject({
    name: "small",
    kind: "agent",
    target: "gcp",
    warnings: [expect.stringMatching(/^window-shorter-than-retries: /)],
  });
  const file = join(ROOT, "dist/gcp/small/index.js");
  expect(readFileSync(file, "utf8")).not.toContain("never-in-a-bundle");
  expect(existsSync(`${file}.map`)).toBe(true);
  rmSync(join(ROOT, "dist/gcp/small"), { recursive: true });
});
