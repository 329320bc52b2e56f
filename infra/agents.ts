import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "../shared/agent.ts";
import { messageOf, PawlError } from "../shared/errors/errors.ts";
import { acceptedInput } from "../shared/input.ts";
import type { Env } from "../shared/settings/variable.ts";
import { readVariable, variables } from "../shared/settings/variables.ts";
import { checkAgentName, checkTaskId } from "../shared/task/names.ts";
import { cronProblem, type Schedule, tickId } from "../shared/task/schedule.ts";
import type { JsonObject } from "../shared/values/json.ts";
import { boundsOf, shownSchema } from "./input-bounds.ts";
import { ENDING, isInstalled, projectFolder, ROOT } from "./project.ts";
import { readTypeScript } from "./typescript.ts";

export function agentsFolder(env: Env = process.env): string {
  const own = readVariable(env, "PAWL_AGENTS_DIR");
  return own ? resolve(own) : join(projectFolder(), "agents");
}

/** Names of all agents: their files' names. */
export async function agentNames(folder: string): Promise<string[]> {
  const files = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new PawlError(
        "setting_invalid",
        `There is no agents folder ${folder}. Run this in a project's folder, or make one: pawl init`,
      );
    throw new PawlError("setting_invalid", `The agents folder ${folder} can't be read: ${messageOf(error)}`);
  });
  const ending = endingIn(folder);
  return files
    .filter((file) => file.endsWith(ending) && !file.slice(0, -ending.length).includes("."))
    .map((file) => file.slice(0, -ending.length))
    .sort();
}

/** Of the demo and the drills there are only compiled ones in an installed package. */
const endingIn = (folder: string) => (isInstalled && resolve(folder).startsWith(ROOT) ? ENDING : ".ts");

/** What may be known of an agent without its code. */
export interface KnownAgent {
  readonly name: string;
  readonly lanes: number;
  readonly dispatchTimeout: number;
  /** Agents whose tasks it submits, as it says. */
  readonly children: readonly string[];
  readonly schedules: readonly Schedule[];
  /** Whether it has a schema for its input. */
  readonly hasSchema: boolean;
  /** Its schema as JSON Schema, for people to read; none where it can't say itself so. */
  readonly inputSchema?: JsonObject;
  /** What surely every input keeps to that it accepts, as JSON Schema. */
  readonly inputBounds?: JsonObject;
}

/** "skip-broken": for an agent's own function, which another's mistake must not stop. */
export async function knownAgents(folder: string, broken?: "skip-broken"): Promise<KnownAgent[]> {
  const known = (await agentNames(folder)).map(async (name): Promise<KnownAgent[]> => {
    try {
      return [knownOf(name, await loadAgent(name, folder))];
    } catch (error) {
      if (broken) return [];
      throw error;
    }
  });
  return (await Promise.all(known)).flat();
}

export function knownOf(name: string, { limits, schedules, input, children }: Agent): KnownAgent {
  const { lanes, dispatchTimeout } = limits;
  const inputSchema = input && shownSchema(input);
  const inputBounds = input && boundsOf(input);
  const said = { ...(inputSchema && { inputSchema }), ...(inputBounds && { inputBounds }) };
  return { name, lanes, dispatchTimeout, children, schedules, hasSchema: input !== undefined, ...said };
}

/** For whoever dispatches: where an agent's tasks go now. Where the folder is not, they go where they went. */
export async function lanesKnown(folder: string): Promise<(agent: string) => number | undefined> {
  const known = await knownAgents(folder, "skip-broken").catch(() => []);
  return (agent) => known.find(({ name }) => name === agent)?.lanes;
}

/** Throws for a name that no agent has. `wasThere`: whether one of a name that is not in the folder was once. */
export async function checkAgents(
  given: readonly string[],
  folder: string,
  wasThere: (name: string) => Promise<boolean> = async () => false,
): Promise<void> {
  const names = await agentNames(folder);
  for (const name of given)
    if (!names.includes(name) && !(await wasThere(name))) throw unknownAgent(name, names, folder);
}

function unknownAgent(name: string, names: readonly string[], folder: string): PawlError {
  const known = names.length > 0 ? `There are: ${names.join(", ")}` : "It is empty";
  return new PawlError(
    "agent_unknown",
    `No agent ${JSON.stringify(name.slice(0, 140))} in ${folder}. ${known}`,
  );
}

export async function loadAgent(name: string, folder: string): Promise<Agent> {
  const names = await agentNames(folder);
  if (!names.includes(name)) throw unknownAgent(name, names, folder);
  checkAgentName(name);
  const file = join(folder, `${name}${endingIn(folder)}`);
  if (file.endsWith(".ts")) await readTypeScript();
  let module: { default?: Agent };
  try {
    module = (await import(pathToFileURL(file).href)) as { default?: Agent };
  } catch (error) {
    throw new PawlError("agent_invalid", `${file}: ${messageOf(error)}`, { cause: error });
  }
  if (module.default?.kind !== "pawl.agent") {
    throw new PawlError(
      "agent_invalid",
      `${file} has no default export made by defineAgent({…}). Code that agents share belongs into ${join(folder, "lib")}`,
    );
  }
  checkSecretNames(file, module.default);
  await checkSchedules(file, name, module.default);
  return module.default;
}

/** Set by the platforms themselves. */
const TAKEN = new Set(
  "PATH HOME PORT NODE_ENV NODE_OPTIONS K_SERVICE K_REVISION K_CONFIGURATION FUNCTION_TARGET FUNCTION_SIGNATURE_TYPE".split(
    " ",
  ),
);

/** Here and not in defineAgent: agents need not carry the table of settings. */
function checkSecretNames(file: string, { secrets }: Agent): void {
  for (const name of secrets) {
    const whose = name in variables ? "Pawl's own, and given where it is needed" : "the platform's own";
    if (name in variables || TAKEN.has(name))
      throw new PawlError("agent_invalid", `${file}: secrets: ${name} is ${whose}: leave it out`);
  }
}

/** Here and not in defineAgent: a function that runs an agent needs no calendar. */
async function checkSchedules(file: string, agent: string, definition: Agent): Promise<void> {
  for (const schedule of definition.schedules) {
    const input = await acceptedInput(definition, schedule.input);
    const problem = cronProblem(schedule) ?? ("problem" in input ? input.problem.message : undefined);
    if (problem) {
      const { name, cron, timezone } = schedule;
      throw new PawlError(
        "agent_invalid",
        `${file}: schedules: ${name} is ${JSON.stringify(cron)} in ${timezone}: ${problem}`,
      );
    }
    checkTaskId(tickId(agent, schedule, 0));
  }
}
