/**
 * What a newcomer does, by npm itself, from an empty folder outside of this repository: create a project, test it, run a task
 * in dev, bundle and dry-run a deploy. Once for each platform. Prints sizes and times, and ends with 1 where one is too large.
 */
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../infra/project.ts";
import { elsewhere, foreignEnv, pack, run, runs } from "./walk.ts";

/** The most that each may be. Time is what a slow network may take. */
const BOUNDS = { tarballKiB: 2_000, installedMiB: 72, firstTaskSeconds: 300 };

const env = foreignEnv();
const failures: string[] = [];
const step = (text: string) =>
  console.log(`${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}`);
const begun = Date.now();

function check(what: string, isSo: boolean, seen = ""): void {
  step(`${isSo ? "ok  " : "FAIL"} ${what}`);
  if (!isSo) failures.push(`${what}\n${seen}`);
}

function bounded(what: string, value: number, most: number, unit: string): void {
  check(`${what}: ${value} ${unit}, at most ${most}`, value <= most);
}

const kib = (folder: string) =>
  Number(execFileSync("du", ["-sk", folder], { encoding: "utf8" }).split("\t")[0]);

/** As a caller of the API does it, in a program of the project's own, whose types are checked. Returns what it printed. */
async function callApi(cwd: string, url: string): Promise<string> {
  const create = ". .pawl/dev/env.sh && npx pawl token create --owner caller --scope submit,read --json";
  const { out } = await runs("sh", ["-c", create], { cwd, env });
  const { token } = JSON.parse(out) as { token: string };
  await writeFile(join(cwd, "caller.ts"), CALLER);
  const config = {
    extends: "./tsconfig.json",
    include: [],
    files: ["caller.ts"],
    compilerOptions: TO_JAVASCRIPT,
  };
  await writeFile(join(cwd, "tsconfig.caller.json"), JSON.stringify(config));
  await runs("npx", ["tsc", "-p", "tsconfig.caller.json"], { cwd, env });
  const called = await runs("node", ["called/caller.js"], { cwd, env: { ...env, URL: url, TOKEN: token } });
  return called.out.trim();
}

const TO_JAVASCRIPT = { noEmit: false, outDir: "called", rewriteRelativeImportExtensions: true };
const CALLER = `import { createClient } from "pawl/client";
import type hello from "./agents/hello.ts";

const { URL: url = "", TOKEN: token = "" } = process.env;
const pawl = createClient<{ hello: typeof hello }>({ url, token });
const task = await pawl.submit("hello", { name: "Grace" });
const { greeting } = await task.result();
console.log(greeting satisfies string);
// @ts-expect-error: it has no such input.
const wrong = () => pawl.submit("hello", { nobody: true });
void wrong;
`;

await using place = await elsewhere();
const [pawl, create] = [await pack(ROOT, place.folder), await pack(join(ROOT, "create"), place.folder)];
step(`packed; here node is ${execFileSync("node", ["--version"], { env, encoding: "utf8" }).trim()}`);
bounded("tarball of pawl", Math.ceil(pawl.bytes / 1024), BOUNDS.tarballKiB, "KiB");

const tool = join(place.folder, "tool");
await mkdir(tool);
await runs("npm", ["init", "--yes"], { cwd: tool, env });
await runs("npm", ["install", create.tarball], { cwd: tool, env });

for (const [platform, store] of [
  ["cloudflare", "nats-kv"],
  ["gcp", "firestore"],
] as const) {
  const name = `on-${platform}`;
  const cwd = join(place.folder, name);
  const from = Date.now();
  const made = await runs(
    join(tool, "node_modules/.bin/create-pawl"),
    [name, "--yes", "--platform", platform, "--store", store, "--pawl", pawl.tarball],
    { cwd: place.folder, env },
  );
  // What npm says of its own settings on this machine is nothing of the package.
  const isOwn = (line: string) => /unknown (user|env) config/i.test(line);
  const warned = made.err.split("\n").filter((line) => /warn/i.test(line) && !isOwn(line));
  check(`${platform}: created and installed with no warning`, warned.length === 0, warned.join("\n"));
  let seconds = 0;
  let called = "nobody called";
  let api = "";
  const dev = await run(
    "npm",
    ["run", "first", "--", "--json"],
    { cwd, env, detached: true },
    async (line) => {
      if (line.startsWith('{"ready":true')) api = JSON.parse(line).urls.api;
      if (!line.includes('"event":"task"')) return false;
      seconds = Math.ceil((Date.now() - from) / 1000);
      called = await callApi(cwd, api).catch(String);
      return true;
    },
  );
  check(
    `${platform}: a task was done in dev`,
    /"state":"completed","outcome":\{"greeting":"Hello, Ada!"\}/.test(dev.out),
    dev.out + dev.err,
  );
  bounded(`${platform}: from nothing to the first task`, seconds, BOUNDS.firstTaskSeconds, "s");
  check(`${platform}: another was done by pawl/client`, called === "Hello, Grace!", called);
  const tested = await run("npm", ["test"], { cwd, env });
  check(`${platform}: its tests pass`, tested.code === 0, tested.out + tested.err);
  const added = await run("npx", ["pawl", "new", "invoice"], { cwd, env });
  check(`${platform}: a second agent is written`, added.code === 0, added.err);
  const again = await run("npm", ["test"], { cwd, env });
  check(`${platform}: and its tests pass`, again.code === 0, again.out + again.err);
  for (const one of ["hello", "api"]) {
    const built = await run("npx", ["pawl", "build", one, "--target", platform], { cwd, env });
    check(`${platform}: ${one} is bundled`, built.code === 0, built.err);
  }
  const dry = await run("npx", ["pawl", "deploy", "--all", "--target", platform, "--dry-run"], { cwd, env });
  check(`${platform}: a dry run of a deploy of everything`, dry.code === 0, dry.out + dry.err);
  await runs("npm", ["prune", "--omit=dev"], { cwd, env });
  bounded(
    `${platform}: installed without development tools`,
    Math.ceil(kib(join(cwd, "node_modules")) / 1024),
    BOUNDS.installedMiB,
    "MiB",
  );
}

for (const failure of failures) console.error(`\n${failure}`);
process.exitCode = failures.length > 0 ? 1 : 0;
