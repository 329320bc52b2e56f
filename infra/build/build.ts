import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { PawlError } from "../../shared/errors/errors.ts";
import { type KnownAgent, knownAgents, loadAgent } from "../agents.ts";
import { type FunctionKind, kib, kindOf, ROOT, type Target } from "./targets.ts";

/** An agent function for Workers may not grow past this: start-up time follows size. */
const LARGEST_GZIP = 256 * 1024;

export interface Built {
  readonly name: string;
  readonly kind: FunctionKind;
  readonly target: Target;
  readonly folder: string;
  readonly file: string;
  readonly bytes: number;
  readonly gzip: number;
  /** What is inside, by path from the project's root. */
  readonly inputs: readonly string[];
}

/** One bundle per function and platform, with the code of the chosen agent only. */
export async function buildFunction(
  name: string,
  target: Target,
  agents: string,
  out = join(ROOT, "dist"),
): Promise<Built> {
  const kind = kindOf(name);
  // Wrong definitions fail here, by file and field.
  if (kind === "agent") await loadAgent(name, agents);
  const folder = join(out, target, name);
  await mkdir(folder, { recursive: true });
  const file = join(folder, "index.js");
  const result = await build({
    ...common,
    ...platforms[target],
    entryPoints: [join(ROOT, "functions", `${kind}.${target === "cloudflare" ? "worker" : "gcp"}.ts`)],
    outfile: file,
    write: false,
    plugins: [virtual(name, agents)],
  });
  for (const { path, contents } of result.outputFiles) await replaceFile(path, contents);
  if (target === "gcp") await writePackage(folder, name);
  const bytes = await readFile(file);
  const gzip = gzipSync(bytes, { level: 9 }).length;
  if (kind === "agent" && target === "cloudflare" && gzip > LARGEST_GZIP) {
    throw new PawlError(
      "bundle_too_large",
      `${name} for Workers has ${kib(gzip)} KiB gzipped; ${kib(LARGEST_GZIP)} is the most. Largest inside: ${largest(result.metafile)}`,
    );
  }
  const inputs = Object.keys(result.metafile.inputs).sort();
  return { name, kind, target, folder, file, bytes: bytes.length, gzip, inputs };
}

/** Whole or not at all, and only if it differs: somebody may be watching. */
async function replaceFile(path: string, contents: Uint8Array): Promise<void> {
  const before = await readFile(path).catch(() => undefined);
  if (before?.equals(contents)) return;
  await writeFile(`${path}.new`, contents);
  await rename(`${path}.new`, path);
}

const common = {
  bundle: true,
  format: "esm",
  // What branches on an error's name, here and in the packages, finds a literal: classes may be renamed.
  minify: true,
  sourcemap: "linked",
  metafile: true,
  logLevel: "silent",
  absWorkingDir: ROOT,
} as const satisfies BuildOptions;

/** Too large, or too dynamic, to be put into a bundle: installed by the platform. */
const EXTERNAL = ["@google-cloud/firestore", "@google-cloud/functions-framework"];

const platforms = {
  cloudflare: {
    platform: "browser",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
  },
  gcp: {
    platform: "node",
    target: "node24",
    external: EXTERNAL,
    // What is CommonJS inside asks for it.
    banner: {
      js: 'import { createRequire as pawlRequire } from "node:module"; const require = pawlRequire(import.meta.url);',
    },
  },
} as const satisfies Record<Target, BuildOptions>;

/** The chosen agent, and what is known of all of them. */
function virtual(name: string, folder: string): Plugin {
  return {
    name: "pawl",
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^pawl:/ }, ({ path }) => ({ path, namespace: "pawl" }));
      onLoad({ filter: /^pawl:agent$/, namespace: "pawl" }, () => ({
        contents: `export { default } from ${JSON.stringify(`./${name}.ts`)}; export const name = ${JSON.stringify(name)};`,
        resolveDir: folder,
      }));
      onLoad({ filter: /^pawl:agents$/, namespace: "pawl" }, async () => {
        const known = await knownAgents(folder, kindOf(name) === "agent" ? "skip-broken" : undefined);
        return { contents: `export const agents = ${JSON.stringify(known.map(neededBy(kindOf(name))))};` };
      });
    },
  };
}

/** Schemas are for the API and schedules for the dispatcher: others need not carry them. */
function neededBy(kind: FunctionKind) {
  return ({ schedules, inputSchema, ...agent }: KnownAgent) => ({
    ...agent,
    schedules: kind === "dispatch" ? schedules : [],
    ...(kind === "api" && inputSchema && { inputSchema }),
  });
}

/** What Google's build installs beside the bundle, at the versions that were tested with it. */
async function writePackage(folder: string, name: string): Promise<void> {
  const ours = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const dependencies = Object.fromEntries(EXTERNAL.map((one) => [one, ours.dependencies[one]]));
  const manifest = { name: `pawl-${name}`, private: true, type: "module", main: "index.js", dependencies };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

function largest({ outputs }: Metafile): string {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const hint = inputs.some(([path]) => path.includes("/zod/v4/locales/"))
    ? '. Write import * as z from "zod": import { z } brings all of its languages along'
    : "";
  const list = inputs
    .sort(([, a], [, b]) => b.bytesInOutput - a.bytesInOutput)
    .slice(0, 5)
    .map(([path, { bytesInOutput }]) => `${path} (${kib(bytesInOutput)} KiB)`)
    .join(", ");
  return list + hint;
}
