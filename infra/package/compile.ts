/**
 * Compiles what the package `pawl` consists of into dist/lib: JavaScript with source maps of all that is reached from its
 * doors, its functions and its commands, and types of the doors. `npm pack` runs it.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../project.ts";

const OUT = join(ROOT, "dist/lib");
/** What is started, bundled or loaded by its name: nobody imports it. */
const BEHIND = [
  "functions/build.d.ts",
  ...["agent", "api", "dispatch", "reconcile"].flatMap((one) => [
    `functions/${one}.gcp.ts`,
    `functions/${one}.worker.ts`,
  ]),
  "infra/cli/main.ts",
  "infra/local/dev/changes/builder.ts",
  "infra/typescript-hooks.ts",
  "infra/demo/agents/blog-post.ts",
  "infra/drills/runner.ts",
  "infra/drills/submitter.ts",
  "infra/drills/agents/drill.ts",
  "infra/drills/agents/drill-frugal.ts",
];

const run = promisify(execFile);
const TSC = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

/** Source files of the package's doors, as its `exports` name them. */
async function doors(): Promise<string[]> {
  const { exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
    exports: Record<string, string | { readonly default: string }>;
  };
  return Object.values(exports).flatMap((door) =>
    typeof door === "string"
      ? []
      : [join(ROOT, door.default.replace("dist/lib/", "").replace(/\.js$/, ".ts"))],
  );
}

async function tsc(...args: readonly string[]): Promise<void> {
  await run(process.execPath, [TSC, ...args], { cwd: ROOT }).catch((error: { stdout?: string }) => {
    throw new Error(`tsc ${args.join(" ")} failed:\n${error.stdout}`);
  });
}

/** With what differs from tsconfig.json; written where nothing else is, and removed. */
async function compile(what: string, files: readonly string[], compilerOptions: object): Promise<void> {
  const config = join(ROOT, `dist/${what}.json`);
  await writeFile(
    config,
    JSON.stringify({ extends: "../infra/package/tsconfig.json", compilerOptions, files }),
  );
  await tsc("-p", config).finally(() => rm(config));
}

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
const open = await doors();
await Promise.all([
  compile("code", [...open, ...BEHIND.map((file) => join(ROOT, file))], {
    sourceMap: true,
    inlineSources: true,
  }),
  compile("types", open, { declaration: true, emitDeclarationOnly: true }),
]);
await cp(join(ROOT, "infra/local/guard.sh"), join(OUT, "infra/local/guard.sh"));
