#!/usr/bin/env node
// Pawl's own Node runs TypeScript as it is; an older one on the PATH hands over to it.
import { spawn } from "node:child_process";
import module, { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, "main.ts");
const [major] = process.versions.node.split(".").map(Number);
if (major >= 24) {
  // To strip types and compile takes longer than most commands do. Not kept below /tmp, which is everybody's.
  module.enableCompileCache(join(here, "../../node_modules/.cache/pawl"));
  await import(main);
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
