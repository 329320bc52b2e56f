import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { firstTask } from "../../infra/cli/project/first-task.ts";
import { checkProjectName, PLATFORMS, STORES, USUAL } from "../../infra/init/choice.ts";
import { filesOf } from "../../infra/init/files.ts";
import { init } from "../../infra/init/init.ts";
import { LIBRARIES, PAWL, pinsFor } from "../../infra/init/pins.ts";
import { writeFiles } from "../../infra/init/write.ts";
import { testedVersions } from "../../infra/missing.ts";
import { projectFolder, ROOT } from "../../infra/project.ts";

const read = (file: string) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const folder = () => mkdtempSync(join(tmpdir(), "pawl-test-"));

test("a project is given what Pawl itself is tested with", () => {
  const { devDependencies, dependencies, version, peerDependencies } = read("package.json");
  const { development, compatibility } = pinsFor("v24.0.0", "cloudflare");
  for (const [name, pinned] of Object.entries(development)) expect(devDependencies[name], name).toBe(pinned);
  const wrangler = readFileSync(join(ROOT, "wrangler.toml"), "utf8");
  expect(wrangler).toContain(`compatibility_date = "${compatibility.date}"`);
  expect(wrangler).toContain(
    `compatibility_flags = ${JSON.stringify(compatibility.flags).replace(",", ", ")}`,
  );
  expect(LIBRARIES.zod).toBe(`^${dependencies.zod}`);
  expect(PAWL).toBe(`^${version}`);
  expect(read("create/package.json").version).toBe(version);
  for (const name of Object.keys(peerDependencies))
    expect(testedVersions()[name], name).toBe(devDependencies[name]);
});

test.each([
  ["v20.20.2", "4.1.12"],
  ["v22.11.0", "4.1.12"],
  ["v22.12.0", "5.1.0"],
  ["v24.21.0", "5.1.0"],
])("on Node %s it is given tools that run there without a warning", (node, vitest) => {
  expect(pinsFor(node, "gcp").development.vitest).toBe(vitest);
});

test("its files follow what was chosen, and its workflow deploys one function a command", () => {
  for (const platform of PLATFORMS)
    for (const store of STORES) {
      const files = filesOf({ name: "mine", platform, store }, pinsFor("v24.0.0", platform));
      const settings = files[platform === "gcp" ? "gcp.env" : "wrangler.toml"];
      expect(settings).toMatch(new RegExp(`^PAWL_STORE ?= ?"?${store}"?$`, "m"));
      expect(Object.keys(files).includes("firebase.json")).toBe(store === "firestore");
      const { devDependencies } = JSON.parse(files["package.json"] ?? "");
      expect("wrangler" in devDependencies).toBe(platform === "cloudflare");
      const target = platform === "gcp" ? " --target gcp" : "";
      const deploys = [
        ...(files[".github/workflows/pawl.yml"] ?? "").matchAll(/- run: npx (pawl deploy .*)$/gm),
      ];
      expect(deploys.map(([, command]) => command)).toEqual(
        ["hello", "dispatch", "reconcile", "api"].map((one) => `pawl deploy ${one}${target}`),
      );
      expect(Object.values(files).join("\n")).not.toMatch(/undefined|\[object/);
    }
});

test.each(["../up", "a b", "$(id)", "-rf", "Agents", "a;b", "x".repeat(41), "ends-", "/abs", "ünder"])(
  "a project can't be named %s, and it is said what it may be named",
  async (name) => {
    expect(() => checkProjectName(name)).toThrow(/use a letter, then a-z 0-9 -, up to 40, such as my-agents/);
    await expect(init(name, { yes: true, install: false })).rejects.toMatchObject({ code: "usage" });
  },
);

test("what is there stays as it is, and all of it is said; a package.json is given only what it lacks", async () => {
  const place = folder();
  mkdirSync(join(place, "agents"));
  writeFileSync(join(place, "agents/hello.ts"), "// mine\n");
  const mine = { name: "theirs", scripts: { test: "jest" }, devDependencies: { zod: "1.0.0" } };
  writeFileSync(join(place, "package.json"), JSON.stringify(mine, null, "\t"));
  const files = filesOf(USUAL, pinsFor("v24.0.0", "cloudflare"));
  const written = await writeFiles(place, files);
  expect(written.kept).toEqual(["agents/hello.ts"]);
  expect(written.wrote).toContain("wrangler.toml");
  expect(written.added).toEqual(expect.arrayContaining(["type", "scripts.dev", "dependencies.pawl"]));
  expect(written.added).not.toEqual(expect.arrayContaining(["scripts.test"]));
  expect(readFileSync(join(place, "agents/hello.ts"), "utf8")).toBe("// mine\n");
  const text = readFileSync(join(place, "package.json"), "utf8");
  expect(text).toMatch(/^\t"name": "theirs"/m);
  const now = JSON.parse(text);
  expect(now).toMatchObject({ ...mine, type: "module", scripts: { test: "jest", dev: "pawl dev" } });
  expect(now.dependencies.zod).toBeUndefined();
  // Again there is nothing left to do.
  expect(await writeFiles(place, files)).toEqual({ wrote: [], added: [], kept: Object.keys(files) });
});

test.each([
  ['{"type": "commonjs"}', /says "type": "commonjs", and agents are ES modules/],
  ["{", /package\.json can't be read/],
  ["[]", /holds no object/],
])("nothing is written beside a package.json that is %s", async (text, message) => {
  const place = folder();
  writeFileSync(join(place, "package.json"), text);
  const files = filesOf(USUAL, pinsFor("v24.0.0", "cloudflare"));
  await expect(writeFiles(place, files)).rejects.toThrow(message);
  await expect(writeFiles(place, { "other.txt": "", ...files })).rejects.toThrow(message);
  expect(() => readFileSync(join(place, "tsconfig.json"))).toThrow(/ENOENT/);
  expect(() => readFileSync(join(place, "other.txt"))).toThrow(/ENOENT/);
});

test("whoever can't be asked is told what to give", async () => {
  await expect(init("mine", { platform: "gcp", install: false })).rejects.toThrow(
    "Nobody is there to be asked: give --yes, or a name, --platform and --store",
  );
  await expect(init("mine", { yes: true, platform: "azure" })).rejects.toThrow(
    '--platform is "azure"; it is one of cloudflare, gcp',
  );
});

test.each([
  ["hello", "usage", "--submit is hello; write the agent and its input"],
  ["echo={", "input_invalid", "not JSON"],
  ["echo={}", "input_invalid", "text"],
  ["nobody={}", "agent_unknown", "No agent"],
])("a first task %s is refused before anything is started", async (given, code, message) => {
  const refused = firstTask(given, join(ROOT, "agents"));
  await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test("the project is the nearest folder above that has agents beside its package.json", () => {
  const place = folder();
  mkdirSync(join(place, "agents/lib"), { recursive: true });
  mkdirSync(join(place, "sub"));
  expect(projectFolder(place)).toBe(ROOT);
  writeFileSync(join(place, "package.json"), "{}");
  for (const from of ["", "agents/lib", "sub"]) expect(projectFolder(join(place, from))).toBe(place);
});
