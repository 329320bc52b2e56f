/**
 * Builds what a change concerns, once, as a process of its own: what was imported stays imported in a process, so a changed
 * agent would be seen as it was; and neither its memory nor esbuild's service outlives the build.
 */
import "../../../../shared/values/older-node.ts";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { messageOf } from "../../../../shared/errors/errors.ts";
import { agentNames, knownOf, loadAgent } from "../../../agents.ts";
import { buildFunction } from "../../../build/build.ts";
import { kindOf, OWN_FUNCTIONS } from "../../../build/targets.ts";
import { knownTo } from "../../../build/virtual.ts";
import { projectFolder } from "../../../project.ts";
import {
  type Builds,
  type Bundle,
  concerned,
  type DevAgent,
  type Problem,
  scriptName,
  scriptsOf,
} from "./plan.ts";

export interface BuildRequest {
  readonly agents: string;
  readonly out: string;
  readonly before: Builds;
  /** Absolute paths. */
  readonly changed: readonly string[];
}

const project = projectFolder();

async function builds({ agents: folder, out, before, changed }: BuildRequest): Promise<Builds> {
  const problems: Problem[] = [];
  const attempt = async <T>(name: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      problems.push({ name, message: messageOf(error) });
      return undefined;
    }
  };
  const files = await agentNames(folder);
  for (const name of files.filter((one) => kindOf(one) !== "agent"))
    problems.push({
      name: `${name}.ts`,
      message: `${name} is one of Pawl's own functions: choose another name`,
    });
  const names = files.filter((one) => kindOf(one) === "agent");
  const stale = new Set(concerned([...names, ...OWN_FUNCTIONS], before.bundles, before.problems, changed));
  const known: Record<string, DevAgent> = {};
  for (const name of names) {
    const fresh = stale.has(name) ? await attempt(name, () => look(name, folder)) : undefined;
    const agent = fresh ?? before.agents[name];
    if (agent) known[name] = agent;
  }
  const all = Object.values(known).map(({ secrets: _, ...agent }) => agent);
  const isBroken = (name: string) => problems.some((problem) => problem.name === name);
  const made = [...Object.keys(known), ...OWN_FUNCTIONS].map(async (name): Promise<[string, Bundle][]> => {
    const carries = knownTo(kindOf(name), all);
    const last = before.bundles[name];
    if (isBroken(name) || (last && !stale.has(name) && last.carries === carries))
      return last ? [[name, last]] : [];
    const built = await attempt(name, () => buildFunction(name, "cloudflare", folder, out, { known: all }));
    if (!built) return last ? [[name, last]] : [];
    return [[name, { file: built.file, inputs: ownFiles(built.inputs), carries }]];
  });
  const spoken = names.filter((name) => existsSync(join(folder, `${name}.model.ts`)));
  const unsaid = new Set(concerned(spoken.map(scriptName), scriptsOf(before), before.problems, changed));
  const scripts = spoken.map(async (name): Promise<[string, Bundle][]> => {
    const fresh = unsaid.has(scriptName(name))
      ? await attempt(scriptName(name), () => buildScript(name, folder, out))
      : undefined;
    const script = fresh ?? before.scripts[name];
    return script ? [[name, script]] : [];
  });
  return {
    bundles: Object.fromEntries((await Promise.all(made)).flat()),
    scripts: Object.fromEntries((await Promise.all(scripts)).flat()),
    agents: known,
    problems,
  };
}

async function look(name: string, folder: string): Promise<DevAgent> {
  const agent = await loadAgent(name, folder).catch(async (error: unknown) => {
    // Of a file that is no TypeScript esbuild says the line and the place, and Node does not.
    const checked = { bundle: true, packages: "external", write: false, logLevel: "silent" } as const;
    await build({ entryPoints: [join(folder, `${name}.ts`)], absWorkingDir: project, ...checked });
    throw error;
  });
  return { ...knownOf(name, agent), secrets: agent.secrets };
}

/** Named by its content: a module is imported once under one name. */
async function buildScript(name: string, agents: string, out: string): Promise<Bundle> {
  const entry = join(agents, `${name}.model.ts`);
  const { outputFiles, metafile } = await build({
    ...{
      entryPoints: [entry],
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      write: false,
    },
    ...{ metafile: true, logLevel: "silent", absWorkingDir: project, sourcemap: "inline" },
  });
  const contents = outputFiles[0]?.contents ?? new Uint8Array();
  const folder = join(out, "scripts");
  await mkdir(folder, { recursive: true });
  const file = join(
    folder,
    `${name}-${createHash("sha256").update(contents).digest("hex").slice(0, 16)}.mjs`,
  );
  await writeFile(file, contents);
  return { file, inputs: ownFiles(Object.keys(metafile.inputs)) };
}

function ownFiles(inputs: readonly string[]): string[] {
  return inputs
    .filter((input) => !input.startsWith("pawl:") && !/(^|\/)node_modules\//.test(input))
    .map((input) => resolve(project, input));
}

const [request = "", answer = ""] = process.argv.slice(2);
await writeFile(
  answer,
  JSON.stringify(await builds(JSON.parse(await readFile(request, "utf8")) as BuildRequest)),
);
// An agent that began something when it was imported would keep this process for ever.
process.exit(0);
