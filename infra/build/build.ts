import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type BuildFailure, type BuildOptions, build, type Plugin } from "esbuild";
import { type KnownAgent, knownAgents, loadAgent } from "../agents.ts";
import { testedVersions } from "../missing.ts";
import { ENDING, projectFolder, ROOT } from "../project.ts";
import { bundleLimit, checkSize } from "./limit.ts";
import { nodeModules } from "./node-modules.ts";
import { withSources } from "./sources.ts";
import { type FunctionKind, kindOf, type Target } from "./targets.ts";
import type { Uncarried } from "./uncarried.ts";
import { virtual } from "./virtual.ts";

export interface Built {
  readonly name: string;
  readonly kind: FunctionKind;
  readonly target: Target;
  readonly folder: string;
  readonly file: string;
  readonly bytes: number;
  readonly gzip: number;
  /** The most that it may have, in KiB gzipped, where there is a limit. */
  readonly limit?: number;
  /** What is inside, by path from the project's folder. */
  readonly inputs: readonly string[];
  /** Of the API: agents whose schema it could not take along, and why. It checks their inputs by JSON Schema only. */
  readonly uncarried: readonly Uncarried[];
}

export interface More {
  /** The project's agents, by whoever has just read them. */
  readonly known?: readonly KnownAgent[];
  /** Where the author's settings of builds are. */
  readonly manifest?: string;
  /** What paths are told from. */
  readonly project?: string;
}

/** One bundle per function and platform, with the code of the chosen agent only. `known`: of all agents, where that is known. */
export async function buildFunction(
  name: string,
  target: Target,
  agents: string,
  out?: string,
  { known, project = projectFolder(), manifest = join(project, "package.json") }: More = {},
): Promise<Built> {
  const kind = kindOf(name);
  // Wrong definitions fail here, by file and field.
  if (kind === "agent") await loadAgent(name, agents);
  const folder = join(out ?? join(project, "dist"), target, name);
  await mkdir(folder, { recursive: true });
  const file = join(folder, "index.js");
  const platform = target === "cloudflare" ? "worker" : "gcp";
  const entry = join(ROOT, "functions", `${kind}.${platform}${ENDING}`);
  const plugins = (carried: readonly string[]) => [
    virtual({ name, target, folder: agents, carried, ...(known && { known }) }),
    ...(target === "cloudflare" ? [nodeModules] : []),
  ];
  const bundle = (carried: readonly string[]) =>
    build({
      ...common,
      ...platforms[target],
      absWorkingDir: project,
      entryPoints: [entry],
      outfile: file,
      write: false,
      plugins: plugins(carried),
    });
  const { result, uncarried } = await carrying(
    bundle,
    kind === "api" ? withSchema(known ?? (await knownAgents(agents))) : [],
    (one) => bundled(join(agents, `${one}.ts`), target, project, plugins([])),
  );
  for (const { path, contents } of withSources(result.outputFiles, agents, project))
    await replaceFile(path, contents);
  if (target === "gcp") await writePackage(folder, name);
  const bytes = await readFile(file);
  const gzip = gzipSync(bytes, { level: 9 }).length;
  const isLimited = kind === "agent" && target === "cloudflare";
  const limit = isLimited ? bundleLimit(await readFile(manifest, "utf8")) : undefined;
  if (limit !== undefined) checkSize(name, gzip, limit, result.metafile);
  const inputs = Object.keys(result.metafile.inputs).sort();
  const sizes = { bytes: bytes.length, gzip, ...(limit && { limit }) };
  return { name, kind, target, folder, file, ...sizes, inputs, uncarried };
}

function withSchema(known: readonly KnownAgent[]): string[] {
  return known.flatMap(({ name, hasSchema }) => (hasSchema ? [name] : []));
}

/** The bundle with these agents inside, or with those of them that can be bundled for the platform. */
async function carrying<Result>(
  bundle: (carried: readonly string[]) => Promise<Result>,
  wanted: readonly string[],
  attempt: (agent: string) => Promise<unknown>,
): Promise<{ result: Result; uncarried: readonly Uncarried[] }> {
  try {
    return { result: await bundle(wanted), uncarried: [] };
  } catch (error) {
    const tried = await Promise.all(
      wanted.map((agent) =>
        attempt(agent).then(
          () => [],
          (failure: BuildFailure): Uncarried[] => [{ agent, reason: firstOf(failure) }],
        ),
      ),
    );
    const uncarried = tried.flat();
    if (uncarried.length === 0) throw error;
    const left = new Set(uncarried.map(({ agent }) => agent));
    return { result: await bundle(wanted.filter((one) => !left.has(one))), uncarried };
  }
}

function bundled(file: string, target: Target, project: string, plugins: Plugin[]): Promise<unknown> {
  const place: BuildOptions = { absWorkingDir: project, entryPoints: [file] };
  const only: BuildOptions = { ...place, write: false, sourcemap: false, plugins };
  return build({ ...common, ...platforms[target], ...only });
}

function firstOf({ errors, message }: BuildFailure): string {
  const [first] = errors ?? [];
  return first ? `${first.location?.file ?? "?"}: ${first.text}` : message;
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
} as const satisfies BuildOptions;

/** Too large, or too dynamic, to be put into a bundle: installed by the platform. */
const EXTERNAL = ["@google-cloud/firestore", "@google-cloud/functions-framework"];

const platforms = {
  cloudflare: {
    platform: "browser",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
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

/** What Google's build installs beside the bundle, at the versions that were tested with it. */
async function writePackage(folder: string, name: string): Promise<void> {
  const tested = testedVersions();
  const dependencies = Object.fromEntries(EXTERNAL.map((one) => [one, tested[one]]));
  const manifest = { name: `pawl-${name}`, private: true, type: "module", main: "index.js", dependencies };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
