#!/usr/bin/env node
// In Pawl's repository its own Node runs the TypeScript as it is, and an older one on the PATH hands over to it. An installed
// package is JavaScript, which any Node from 20.12 on runs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module, { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "main.ts");
const isInstalled = !existsSync(source);
const main = isInstalled ? join(here, "../../dist/lib/infra/cli/main.js") : source;
const [major] = process.versions.node.split(".").map(Number);
if (isInstalled || major >= 24) {
  // To strip types and compile takes longer than most commands do. Not kept below /tmp, which is everybody's.
  module.enableCompileCache?.(join(here, isInstalled ? "../../.." : "../../node_modules", ".cache/pawl"));
  await import(pathToFileURL(main).href);
} else {
  const node = join(dirname(createRequire(import.meta.url).resolve("node/package.json")), "bin/node");
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: "inherit" });
  // Whoever stops this process means the other one. A terminal's Ctrl-C reaches both by itself.
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  process.on("SIGINT", () => {});
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? (signal === "SIGKILL" ? 137 : 1);
  });
}
