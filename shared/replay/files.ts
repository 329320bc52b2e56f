import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Agent } from "../agent.ts";
import { messageOf, PawlError } from "../errors/errors.ts";
import { type ExportedJournal, readExported } from "./exported.ts";
import { type Difference, type Replay, type ReplayOptions, replay } from "./replay.ts";

/** A journal of a file, and what became of it. */
export interface ReplayedFile {
  readonly file: string;
  readonly journal: ExportedJournal;
  readonly replay: Replay;
}

/** The exported journals of a folder, or the one of a file, each on the agent of its name, one after the other. */
export async function* replayFiles(
  path: string,
  agentOf: (name: string) => Promise<Agent>,
  options: ReplayOptions = {},
): AsyncGenerator<ReplayedFile> {
  for (const file of await filesOf(path)) {
    const journal = readExported(await readFile(file, "utf8"), file);
    yield { file, journal, replay: await replayOn(journal, agentOf, options) };
  }
}

/** On the agent that it names. One that is gone, or can't be loaded, is a difference like any other. */
export async function replayOn(
  journal: ExportedJournal,
  agentOf: (name: string) => Promise<Agent>,
  options: ReplayOptions = {},
): Promise<Replay> {
  const { id: task, agent: name } = journal.task;
  let agent: Agent;
  try {
    agent = await agentOf(name);
  } catch (error) {
    const gone: Difference = { kind: "agent", message: messageOf(error) };
    return { task, agent: name, calls: [], ends: "refused", differences: [gone] };
  }
  return replay(agent, journal, options);
}

async function filesOf(path: string): Promise<string[]> {
  const there = await stat(path).catch((error: unknown) => {
    throw new PawlError("input_invalid", `${path} can't be read: ${messageOf(error)}`);
  });
  if (!there.isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => name.endsWith(".json")).sort();
  if (names.length > 0) return names.map((name) => join(path, name));
  // Whoever tests by journals would otherwise test nothing.
  throw new PawlError(
    "input_invalid",
    `${path} has no journals. pawl journal export <task> --to ${path} writes one there`,
  );
}
