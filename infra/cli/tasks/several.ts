import type { Command } from "commander";
import type { Wired } from "../../../functions/wiring/wire.node.ts";
import { isPawlError, messageOf } from "../../../shared/errors/errors.ts";
import type { State, Task } from "../../../shared/task/document.ts";
import { isFound } from "../../../shared/web/api/search.ts";
import { agentsFolder, checkAgents } from "../../agents.ts";
import { say } from "../output.ts";
import { row, warnOf } from "./tasks.ts";

/** Which tasks are meant: all of these. */
export interface Which {
  readonly agent?: string;
  readonly state?: State;
  readonly owner?: string;
  /** "team=docs", or a label with any value. */
  readonly label?: string;
  /** A dead letter's code. */
  readonly code?: string;
}

/** The options by which every command about several tasks is told which. */
export function withWhich(command: Command, all = ""): Command {
  return command
    .option("--agent <name>", `${all}of this agent`)
    .option("--owner <name>", `${all}submitted by this owner`)
    .option("--label <name=value>", `${all}with this label, or with this name and any value`);
}

const PAGE = 100;

/** All that match, the last changed first. Labels and codes no store can look for: the rest is read, and they are picked from it. */
export async function* matching(
  { store, log }: Wired,
  { agent, state, owner, label, code }: Which,
  isMeant: (task: Task) => boolean = () => true,
): AsyncGenerator<Task> {
  // One that is gone may have left tasks: only a name that nobody ever had is a mistake.
  if (agent !== undefined)
    await checkAgents([agent], agentsFolder(), async () => (await store.list({ agent }, 1)).tasks.length > 0);
  const filter = {
    ...(agent !== undefined && { agent }),
    ...(state && { state }),
    ...(owner !== undefined && { owner }),
  };
  const isSought = isFound({ label, error: code });
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false) {
    const page = await store.list(filter, PAGE, cursor);
    warnOf(log, page.unreadable);
    for (const task of page.tasks) if (isSought(task) && isMeant(task)) yield task;
    ({ cursor } = page);
  }
}

/** Named before anything is done. */
const NAMED = 10;

/** What a change of several tasks would be about. */
export interface Preview {
  readonly count: number;
  readonly states: Partial<Record<State, number>>;
  /** The last changed of them. */
  readonly newest: readonly { readonly id: string; readonly agent: string; readonly state: State }[];
}

export function previewOf(tasks: readonly Task[]): Preview {
  const states: Partial<Record<State, number>> = {};
  for (const { state } of tasks) states[state] = (states[state] ?? 0) + 1;
  const newest = tasks.slice(0, NAMED).map(({ id, agent, state }) => ({ id, agent, state }));
  return { count: tasks.length, states, newest };
}

/** The same for people. `todo`: how it is done. */
export function sayPreview(tasks: readonly Task[], todo: string): void {
  const { count, states } = previewOf(tasks);
  if (count === 0) {
    say("no such tasks");
    return;
  }
  for (const task of tasks.slice(0, NAMED)) say(row(task));
  if (count > NAMED) say(`and ${count - NAMED} more`);
  const each = Object.entries(states).map(([state, many]) => `${many} ${state.replace("_", " ")}`);
  say(
    `${count} ${count === 1 ? "task matches" : "tasks match"}: ${each.join(", ")}. Nothing was done: ${todo}`,
  );
}

export interface Done {
  readonly done: string[];
  readonly refused: { readonly id: string; readonly reason: string }[];
}

/** One after the other. One that has moved on meanwhile, or can't be, does not stop the others. */
export async function onEach(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
  json: boolean,
): Promise<Done> {
  const done: string[] = [];
  const refused: { id: string; reason: string }[] = [];
  for (const id of ids) {
    try {
      await work(id);
      done.push(id);
    } catch (error) {
      if (!isPawlError(error) || error.disposition === "retry") throw error;
      refused.push({ id, reason: messageOf(error) });
      if (!json) say(`  ${id}: ${messageOf(error)}`);
    }
    if (process.stderr.isTTY) process.stderr.write(`\r${done.length + refused.length} of ${ids.length} `);
  }
  return { done, refused };
}
