import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readVariables } from "../../shared/settings/variables.ts";
import { knownAgents, loadAgent } from "../agents.ts";
import { type Built, buildFunction } from "../build/build.ts";
import { kindOf, type Target } from "../build/targets.ts";
import { manifestOf } from "./manifest.ts";
import type { Candidate } from "./plan.ts";
import type { Platform } from "./platform.ts";
import type { Needing } from "./secrets.ts";

/** What is deployed, to where. */
export interface Project {
  readonly target: Target;
  readonly platform: Platform;
  /** The folder of agents. */
  readonly agents: string;
}

export async function needingOf(name: string, { target, platform, agents }: Project): Promise<Needing> {
  const kind = kindOf(name);
  const declared = kind === "agent" ? (await loadAgent(name, agents)).secrets : [];
  const { given } = readVariables(platform.settings);
  return { kind, target, given, declared, kept: platform.kept };
}

/** Builds a function as it would be deployed now. */
export async function candidateOf(
  name: string,
  project: Project,
  needing: Needing,
): Promise<Candidate & { readonly built: Built }> {
  const { target, agents } = project;
  const { kind } = needing;
  const bundle = await buildFunction(name, target, agents, resolve("dist"));
  const known = await knownAgents(agents, kind === "agent" ? "skip-broken" : undefined);
  const manifest = manifestOf(await readFile(bundle.file), kind, known);
  return { name, kind, manifest, needing, known, built: bundle };
}
