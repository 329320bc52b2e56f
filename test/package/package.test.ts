import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../infra/project.ts";
import { testNats } from "../support/servers/stores.ts";
import { elsewhere, foreignEnv, linkInstall, type Packed, pack, run, runs } from "./walk.ts";

// The whole of it, by npm itself and on both platforms, is `npm run test:package`.
const env = { ...foreignEnv(), PAWL_STORE: "nats-kv" };
let place: Awaited<ReturnType<typeof elsewhere>>;
let packed: Packed;
let project: string;

beforeAll(async () => {
  place = await elsewhere();
  const create = runs(process.execPath, [join(ROOT, "infra/package/create.ts")], {});
  packed = await pack(ROOT, place.folder);
  await create;
  const tool = join(ROOT, "create/create-pawl.js");
  const given = ["far-away", "--yes", "--platform", "gcp", "--no-install", "--pawl", packed.tarball];
  const { out } = await runs("node", [tool, ...given], { cwd: place.folder, env });
  expect(out).toMatch(
    /^wrote far-away\/package\.json, .*far-away\/gcp\.env.*\nNow:\n {2}cd far-away\n {2}npm install\n/,
  );
  project = join(place.folder, "far-away");
  await linkInstall(project, packed.tarball, ["esbuild", "@types/node"]);
});

afterAll(() => place[Symbol.asyncDispose]());

const pawl = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  run("node", [join(project, "node_modules/pawl/infra/cli/pawl.mjs"), ...args], {
    cwd: project,
    env: { ...env, ...more },
  });

test("the package is small, has no sources and no tests, and types where it has doors", () => {
  expect(packed.bytes).toBeLessThan(2_100_000);
  expect(packed.unpacked).toBeLessThan(7_500_000);
  expect(packed.files.filter((file) => /(?<!\.d)\.ts$/.test(file))).toEqual([]);
  expect(packed.files.filter((file) => /^(test|bench|agents)\/|\.test\./.test(file))).toEqual([]);
  const { exports } = JSON.parse(readFileSync(join(project, "node_modules/pawl/package.json"), "utf8")) as {
    exports: Record<string, string | Record<string, string>>;
  };
  const behind = Object.values(exports).flatMap((door) =>
    typeof door === "string" ? [door] : Object.values(door),
  );
  for (const file of behind) expect(packed.files).toContain(file.replace("./", ""));
  // Everybody who says npm create fetches all of it.
  expect(readFileSync(join(ROOT, "create/create-pawl.js")).length).toBeLessThan(60_000);
});

test("elsewhere an agent is type-checked by the package's own types", async () => {
  writeFileSync(
    join(project, "tsconfig.agent.json"),
    '{"extends":"./tsconfig.json","include":[],"files":["agents/hello.ts","agents/wrong.ts"]}',
  );
  const wrong = `import { defineAgent } from "pawl";\nexport default defineAgent({ run: ({ step }) => step(7) });\n`;
  writeFileSync(join(project, "agents/wrong.ts"), wrong);
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { out } = await run("node", [tsc, "-p", "tsconfig.agent.json"], { cwd: project, env });
  writeFileSync(join(project, "agents/wrong.ts"), "");
  expect(out.trim().split("\n")).toEqual([
    expect.stringMatching(/^agents\/wrong\.ts\(2,\d+\): error TS2554/),
  ]);
});

test("elsewhere it is bundled for both platforms, and bundles name nothing of this machine", async () => {
  for (const target of ["cloudflare", "gcp"]) {
    const { code, out, err } = await pawl(["build", "hello", "--target", target, "--json"]);
    expect(code, err).toBe(0);
    const { file, inputs } = JSON.parse(out) as { file: string; inputs: string[] };
    expect(file).toBe(`dist/${target}/hello/index.js`);
    expect(inputs).toContain("agents/hello.ts");
    expect(inputs).toContain("node_modules/pawl/dist/lib/shared/agent.js");
    expect(readFileSync(join(project, file), "utf8")).not.toContain(place.folder);
  }
});

test("elsewhere a task is submitted, run and shown", async () => {
  await using nats = await testNats();
  const at = { NATS_URL: nats.url };
  const submitted = await pawl(["submit", "hello", '{"name": "Ada"}', "--id", "hello-1"], at);
  expect(submitted).toMatchObject({ code: 0, out: expect.stringContaining("accepted hello-1") });
  const ran = await pawl(["run", "hello", "--drain"], at);
  expect(ran).toMatchObject({ code: 0, out: "hello: 1 completed\n" });
  expect(ran.err).not.toMatch(/warning/i);
  const { out } = await pawl(["status", "hello-1", "--json"], at);
  expect(JSON.parse(out)).toMatchObject({ state: "completed", result: { greeting: "Hello, Ada!" } });
});

test("what is not installed is named with the command that mends it, and errors lead to the docs that are there", async () => {
  const { code, err } = await pawl(["dev"]);
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringMatching(
      /^pawl: This needs workerd, which is not installed\. Run: npm install --save-dev workerd@1\.\d+\.\d\n.* \(node_modules\/pawl\/docs\/errors\.md#setting_invalid\)\n$/,
    ),
  });
});
