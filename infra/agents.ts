import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Agent } from "../shared/agent.ts";
import { messageOf, PawlError } from "../shared/errors/errors.ts";
import { acceptedInput } from "../shared/runner/run.ts";
import type { Env } from "../shared/settings/variable.ts";
import { readVariable } from "../shared/settings/variables.ts";
import { checkAgentName, checkTaskId } from "../shared/task/names.ts";
import { cronProblem, type Schedule, tickId } from "../shared/task/schedule.ts";
import { jsonSchemaOf } from "../shared/tool.ts";
import type { JsonObject } from "../shared/values/json.ts";

const OURS = fileURLToPath(new URL("../agents", import.meta.url));

export function agentsFolder(env: Env = process.env): string {
  const own = readVariable(env, "PAWL_AGENTS_DIR");
  return own ? resolve(own) : OURS;
}

/** Names of all agents: their files' names. */
export async function agentNames(folder: string): Promise<string[]> {
  const files = await readdir(folder).catch((error: unknown) => {
    throw new PawlError("setting_invalid", `The agents folder ${folder} can't be read: ${messageOf(error)}`);
  });
  return files
    .filter((file) => /^[^.]+\.ts$/.test(file))
    .map((file) => file.slice(0, -3))
    .sort();
}

/** What may be known of an agent without its code. */
export interface KnownAgent {
  readonly name: string;
  readonly lanes: number;
  readonly dispatchTimeout: number;
  readonly schedules: readonly Schedule[];
  /** What its input must be; none where its schema can't say itself as JSON Schema. */
  readonly inputSchema?: JsonObject;
}

/** "skip-broken": for an agent's own function, which another's mistake must not stop. */
export async function knownAgents(folder: string, broken?: "skip-broken"): Promise<KnownAgent[]> {
  const known = (await agentNames(folder)).map(async (name): Promise<KnownAgent[]> => {
    try {
      const { limits, schedules, input } = await loadAgent(name, folder);
      const { lanes, dispatchTimeout } = limits;
      const inputSchema = input && isPlain(input) ? jsonSchemaOf(input) : undefined;
      return [{ name, lanes, dispatchTimeout, schedules, ...(inputSchema && { inputSchema }) }];
    } catch (error) {
      if (broken) return [];
      throw error;
    }
  });
  return (await Promise.all(known)).flat();
}

/** For whoever dispatches: where an agent's tasks go now. Where the folder is not, they go where they went. */
export async function lanesKnown(folder: string): Promise<(agent: string) => number | undefined> {
  const known = await knownAgents(folder, "skip-broken").catch(() => []);
  return (agent) => known.find(({ name }) => name === agent)?.lanes;
}

interface ZodLike {
  readonly _zod?: { readonly def: Record<string, unknown> };
}

const PLAIN_TYPES = new Set(
  "object string number boolean null enum literal array record union optional nullable any unknown".split(
    " ",
  ),
);
const PLAIN_CHECKS = new Set(
  "min_length max_length length_equals greater_than less_than multiple_of number_format".split(" "),
);

/**
 * Whether JSON Schema says all that a schema accepts. One that coerces, transforms or has checks of its own may accept
 * more: an input that it would take must not be refused before it was asked.
 */
function isPlain(schema: unknown): boolean {
  const def = (schema as ZodLike)?._zod?.def;
  if (!def || !PLAIN_TYPES.has(String(def.type)) || def.coerce) return false;
  const checks = (def.checks ?? []) as ZodLike[];
  if (!checks.every((one) => PLAIN_CHECKS.has(String(one._zod?.def.check)))) return false;
  if ("format" in def && !["safeint", "int32", "float64"].includes(String(def.format))) return false;
  const inner = [def.element, def.innerType, def.valueType, ...((def.options ?? []) as unknown[])];
  const shape = Object.values((def.shape ?? {}) as object);
  return [...inner, ...shape].every((one) => one === undefined || isPlain(one));
}

export async function loadAgent(name: string, folder: string): Promise<Agent> {
  const names = await agentNames(folder);
  if (names.includes(name)) checkAgentName(name);
  else {
    const known = names.length > 0 ? `There are: ${names.join(", ")}` : "It is empty";
    throw new PawlError("agent_unknown", `No agent ${JSON.stringify(name)} in ${folder}. ${known}`);
  }
  const file = join(folder, `${name}.ts`);
  let module: { default?: Agent };
  try {
    module = (await import(pathToFileURL(file).href)) as { default?: Agent };
  } catch (error) {
    throw new PawlError("agent_invalid", `${file}: ${messageOf(error)}`, { cause: error });
  }
  if (module.default?.kind !== "pawl.agent") {
    throw new PawlError("agent_invalid", `${file} has no default export made by defineAgent({…})`);
  }
  await checkSchedules(file, name, module.default);
  return module.default;
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
