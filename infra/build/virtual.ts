import type { Plugin } from "esbuild";
import { type KnownAgent, knownAgents } from "../agents.ts";
import { NODE_MODULE } from "./node-modules.ts";
import { type FunctionKind, kindOf, type Target } from "./targets.ts";

interface Virtual {
  readonly name: string;
  readonly target: Target;
  /** Of the agents. */
  readonly folder: string;
  /** Agents whose schemas the API takes along. */
  readonly carried: readonly string[];
  /** Of all agents, where that is known. */
  readonly known?: readonly KnownAgent[];
}

/** The modules that a build makes up: the chosen agent, what is known of all of them, and, for the API, their schemas. */
export function virtual({ name, target, folder, carried, known: told }: Virtual): Plugin {
  return {
    name: "pawl",
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^pawl:/ }, ({ path }) => ({ path, namespace: "pawl" }));
      onLoad({ filter: /^pawl:agent$/, namespace: "pawl" }, () => ({
        contents: `export { default } from ${JSON.stringify(`./${name}.ts`)}; export const name = ${JSON.stringify(name)};`,
        resolveDir: folder,
      }));
      onLoad({ filter: /^pawl:agents$/, namespace: "pawl" }, async () => {
        const broken = kindOf(name) === "agent" ? "skip-broken" : undefined;
        const known = told ?? (await knownAgents(folder, broken));
        return { contents: `export const agents = ${knownTo(kindOf(name), known)};` };
      });
      // Loaded when they are asked for: one that throws then is that agent's trouble, and not the API's.
      onLoad({ filter: /^pawl:schemas$/, namespace: "pawl" }, () => ({
        contents: `export const schemas = {${carried.map((one) => `${JSON.stringify(one)}: () => import(${JSON.stringify(`./${one}.ts`)})`).join(", ")}};`,
        resolveDir: folder,
      }));
      if (kindOf(name) !== "api" || target !== "cloudflare") return;
      // An agent's import of what this Worker has not would keep the whole of it from starting: it is asked for late, too.
      onResolve({ filter: NODE_MODULE }, ({ path }) => ({
        path: path.startsWith("node:") ? path : `node:${path}`,
        namespace: "pawl-late",
      }));
      onLoad({ filter: /^/, namespace: "pawl-late" }, ({ path }) => ({ contents: lateModule(path) }));
    },
  };
}

function lateModule(path: string): string {
  const id = JSON.stringify(path);
  return `const found = globalThis.process?.getBuiltinModule?.(${id});
if (!found) throw new Error("there is no " + ${id} + " in this Worker: see nodejs_compat");
module.exports = found;`;
}

/** As JSON. Schemas are for the API and schedules for the dispatcher: others need not carry them. */
export function knownTo(kind: FunctionKind, known: readonly KnownAgent[]): string {
  const needed = known.map(({ schedules, hasSchema: _, inputSchema, inputBounds, ...agent }) => ({
    ...agent,
    schedules: kind === "dispatch" ? schedules : [],
    ...(kind === "api" && inputSchema && { inputSchema }),
    ...(kind === "api" && inputBounds && { inputBounds }),
  }));
  return JSON.stringify(needed);
}
