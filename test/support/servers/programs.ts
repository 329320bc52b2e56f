import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { ROOT } from "../../../infra/project.ts";

/** Programs that tests start, each in one file: its hundreds of modules would take half a second of every start. */
export interface Programs {
  /** The command line. */
  readonly pawl: string;
  /** The same, whose deploys bundle only what is the project's own: see light-esbuild.ts. */
  readonly lightPawl: string;
  /** The same loop, stopping dead at a boundary. */
  readonly drill: string;
  readonly reconcile: string;
  /** The agents of test/support/agents, which share one copy of Pawl with the program that loads them. */
  readonly agents: string;
  /** What agents of a test's own import of that copy, if one of these programs is to load them. */
  readonly agentModule: string;
  /** Where functions' bundles are left, by whoever needs one first. */
  readonly bundles: string;
}

const MAIN = join(ROOT, "infra/cli/main.ts");
const AGENTS = fileURLToPath(new URL("../agents", import.meta.url));

const common = {
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  logLevel: "silent",
  external: ["@google-cloud/firestore", "esbuild", "wrangler", "workerd"],
  // What is CommonJS inside asks for it.
  banner: {
    js: 'import { createRequire as pawlRequire } from "node:module"; const require = pawlRequire(import.meta.url);',
  },
} as const satisfies BuildOptions;

/** Built once for a whole run, inside the project so that packages are found. */
export async function buildPrograms(): Promise<Programs & Disposable> {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const out = mkdtempSync(join(ROOT, "dist", "programs-"));
  const agents = readdirSync(AGENTS).map((file) => basename(file, ".ts"));
  const light = build({
    ...common,
    outdir: join(out, "light"),
    entryPoints: { pawl: MAIN },
    plugins: [lightly, atHome],
  });
  await build({
    ...common,
    outdir: out,
    entryPoints: {
      pawl: MAIN,
      drill: join(ROOT, "infra/drills/runner.ts"),
      reconcile: join(ROOT, "test/support/faults/reconcile-child.ts"),
      agent: join(ROOT, "shared/agent.ts"),
      ...Object.fromEntries(agents.map((name) => [`agents/${name}`, join(AGENTS, `${name}.ts`)])),
    },
    plugins: [atHome],
  });
  await light;
  // An agent is a file that ends in .ts.
  for (const name of agents)
    writeFileSync(join(out, "agents", `${name}.ts`), `export { default } from "./${name}.js";\n`);
  return {
    pawl: join(out, "pawl.js"),
    lightPawl: join(out, "light", "pawl.js"),
    drill: join(out, "drill.js"),
    reconcile: join(out, "reconcile.js"),
    agents: join(out, "agents"),
    agentModule: join(out, "agent.js"),
    bundles: join(out, "bundles"),
    [Symbol.dispose]: () => rmSync(out, { recursive: true, force: true }),
  };
}

/** Files that are found by where a module is stay where they are: a module of Pawl keeps its own address. */
const atHome: Plugin = {
  name: "at-home",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (path.includes("/node_modules/")) return undefined;
      const home = JSON.stringify(pathToFileURL(path).href);
      return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", home), loader: "ts" };
    });
  },
};

const lightly: Plugin = {
  name: "lightly",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^esbuild$/ }, ({ importer }) =>
      importer.includes("/infra/")
        ? { path: fileURLToPath(new URL("light-esbuild.ts", import.meta.url)) }
        : undefined,
    );
  },
};
