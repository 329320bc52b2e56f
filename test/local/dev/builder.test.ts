import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildChanged } from "../../../infra/local/dev/changes/build.ts";
import { type Builds, NOTHING_BUILT } from "../../../infra/local/dev/changes/plan.ts";
import { descendants } from "../../support/servers/dev.ts";
import { SHARED, tempAgents } from "../../support/temp-agents.ts";

const folder = tempAgents();

test("each build sees files as they are, builds what a change concerns, and leaves no process", async () => {
  const out = join(folder, "out");
  mkdirSync(join(folder, "lib"));
  const file = (name: string) => join(folder, name);
  const agent = (name: string, definition: string, imports = "") =>
    writeFileSync(
      file(`${name}.ts`),
      `import { defineAgent } from "${SHARED}/agent.ts";\n${imports}\nexport default defineAgent({ ${definition} });\n`,
    );
  const build = (before: Builds, ...changed: string[]) =>
    buildChanged({ agents: folder, out, before, changed: changed.map(file) });
  const carried = ({ bundles }: Builds, name: string) =>
    JSON.parse(bundles[name]?.carries ?? "[]") as object[];

  writeFileSync(file("lib/word.ts"), 'export const word = "one";');
  agent("one", "run: () => word", 'import { word } from "./lib/word.ts";');
  agent("two", "run: () => 2");
  agent("api", "run: () => 0");
  writeFileSync(file("broken.ts"), "export default {");
  const first = await build(NOTHING_BUILT);
  expect(Object.keys(first.bundles).sort()).toEqual(["api", "dispatch", "one", "reconcile", "two"]);
  expect(first.problems).toEqual([
    { name: "api.ts", message: "api is one of Pawl's own functions: choose another name" },
    { name: "broken", message: expect.stringMatching(/broken\.ts:1:16/) },
  ]);
  expect(carried(first, "api")).toMatchObject([{ name: "one", lanes: 1 }, { name: "two" }]);
  expect(first.bundles.one?.inputs).toContain(file("lib/word.ts"));
  expect(first.bundles.one?.inputs.join()).not.toContain("node_modules");

  // More lanes, which the API and the others learn; a mended one; one gone; a script.
  agent("one", "limits: { lanes: 3 }, run: () => word", 'import { word } from "./lib/word.ts";');
  agent("broken", "run: () => 1");
  rmSync(file("two.ts"));
  rmSync(file("api.ts"));
  writeFileSync(file("one.model.ts"), 'export default ["said"];');
  const second = await build(first, "one.ts", "broken.ts", "two.ts", "one.model.ts");
  expect(second.problems).toEqual([]);
  expect(carried(second, "dispatch")).toMatchObject([
    { name: "broken", lanes: 1 },
    { name: "one", lanes: 3 },
  ]);
  expect(Object.keys(second.bundles)).not.toContain("two");
  expect(Object.keys(second.scripts)).toEqual(["one"]);

  // Nothing is built of what did not change; of what breaks, the last good one is kept.
  const files = Object.fromEntries(Object.entries(second.bundles).map(([name, { file }]) => [name, file]));
  for (const bundle of Object.values(files)) rmSync(bundle);
  writeFileSync(file("broken.ts"), "nothing good");
  const third = await build(second, "broken.ts");
  expect(third.problems).toMatchObject([{ name: "broken" }]);
  expect(third.bundles).toEqual(second.bundles);
  writeFileSync(file("lib/word.ts"), 'export const word = "two";');
  const fourth = await build({ ...third, problems: [] }, "lib/word.ts");
  expect(fourth.problems).toEqual([]);
  expect(
    Object.entries(files)
      .filter(([, bundle]) => existsSync(bundle))
      .map(([name]) => name),
  ).toEqual(["one"]);
  expect(descendants(process.pid).filter(({ command }) => /builder\.ts/.test(command))).toEqual([]);
}, 300_000);
