import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Agent } from "../agent.ts";
import { PawlError } from "../errors/errors.ts";
import { replayFiles } from "../replay/files.ts";
import type { Difference } from "../replay/replay.ts";
import { differenceLines } from "../replay/said.ts";

/** What a test by journals allows, and where its agents are. */
export interface ReplaysOptions {
  /** The agents, by name; or their folder. "agents" by default, under the folder in which the tests were started. */
  readonly agents?: string | URL | Readonly<Record<string, Agent>>;
  /** Kinds of differences that are meant: "prompt", after prompts were changed, or "result". */
  readonly allow?: readonly Difference["kind"][];
  /** How long a handler may take: its own code does, its calls don't. "30s" by default. */
  readonly timeout?: string;
}

/**
 * Replays the journals of a folder, as `pawl journal export` writes them, on today's code. Throws `replay_differs`, with the
 * first difference of each, where a task that is under way would not go on, or one that is over would end otherwise. A folder
 * without journals throws too.
 */
export async function replays(folder: string | URL, options: ReplaysOptions = {}): Promise<void> {
  const { agents = "agents", allow = [], timeout } = options;
  const agentOf = async (name: string): Promise<Agent> => {
    if (typeof agents === "string" || agents instanceof URL) return agentIn(pathOf(agents), name);
    const agent = agents[name];
    if (!agent) throw new PawlError("agent_unknown", `The test gives no agent ${JSON.stringify(name)}`);
    return agent;
  };
  const wrong: string[] = [];
  for await (const { file, replay } of replayFiles(
    pathOf(folder),
    agentOf,
    timeout === undefined ? {} : { timeout },
  )) {
    const differences = replay.differences.filter(({ kind }) => !allow.includes(kind));
    if (differences.length > 0)
      wrong.push([`${file}: ${replay.task}`, ...differenceLines(differences)].join("\n  "));
  }
  if (wrong.length > 0) throw new PawlError("replay_differs", wrong.join("\n"));
}

const pathOf = (given: string | URL): string =>
  given instanceof URL ? fileURLToPath(given) : resolve(given);

async function agentIn(folder: string, name: string): Promise<Agent> {
  const file = resolve(folder, `${name}.ts`);
  const module = await (
    import(/* @vite-ignore */ pathToFileURL(file).href) as Promise<{ default?: Agent }>
  ).catch((error: { code?: unknown }) => {
    // A Node before 22.18. Whoever imports the agent in the test has its runner read it.
    if (error.code !== "ERR_UNKNOWN_FILE_EXTENSION") throw error;
    throw new PawlError(
      "agent_invalid",
      `This Node can't read ${file} by itself. Give the test its agents: replays(folder, { agents: { … } })`,
    );
  });
  if (module.default?.kind === "pawl.agent") return module.default;
  throw new PawlError("agent_invalid", `${file} has no default export made by defineAgent({…})`);
}
