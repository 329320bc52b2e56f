import type { Config } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import type { Agent } from "../../shared/agent.ts";
import { messageOf } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { exportJournal } from "../../shared/replay/exported.ts";
import { replay } from "../../shared/replay/replay.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import type { State } from "../../shared/task/document.ts";
import { stateFacts, states } from "../../shared/task/table.ts";
import { hostAuthorsCode } from "../authors-code.ts";
import { logger } from "../cli/output.ts";

/** So many tasks are looked at, and for so long: a deploy is not to wait for all of a backlog. */
const MOST = 100;
const LONGEST = 20_000;
/** So many are named. */
const NAMED = 5;

const OPEN: readonly State[] = states.filter((state) => !stateFacts[state].isFinal);

/** What of them keeps a task under way from going on. Other prompts, or another result, do not. */
const STOPS: ReadonlySet<string> = new Set(["calls", "error", "input"]);

/** Replays the agent's tasks that are under way on the code that is about to be deployed. Each line is a warning. */
export async function wouldNotReplay(deps: Deps, name: string, agent: Agent): Promise<string[]> {
  const until = deps.clock.monotonic() + LONGEST;
  const { tasks, unreadable = [], cursor } = await deps.store.list({ agent: name, states: OPEN }, MOST);
  const stuck: string[] = [];
  let replayed = 0;
  for (const task of tasks) {
    if (deps.clock.monotonic() > until) break;
    const journal = await exportJournal(deps, task);
    replayed++;
    if (journal.entries.length === 0) continue;
    const { differences } = await replay(agent, journal, { timeout: "5s" });
    const first = differences.find(({ kind }) => STOPS.has(kind));
    if (first) stuck.push(`${task.id}: ${first.message}`);
  }
  const isCut = cursor !== undefined || replayed < tasks.length;
  const said = `${stuck.length} of ${isCut ? "the newest " : ""}${replayed} tasks of ${name} that are under way`;
  const todo = "Raise its version and keep the old calls for them (docs/author.md), or let them end first";
  const more = stuck.length > NAMED ? [`and ${stuck.length - NAMED} more`] : [];
  return [
    ...(stuck.length > 0 ? [`${said} would not go on with this code. ${todo}`] : []),
    ...stuck.slice(0, NAMED),
    ...more,
    ...(unreadable.length > 0
      ? [
          `${unreadable.length} tasks of ${name} can't be read from here, and were not replayed: ${unreadable[0]?.why}`,
        ]
      : []),
  ];
}

/** The same, with a connection of its own. What keeps it from looking is a warning too, and no deploy fails of it. */
export async function lookUnderWay(
  configured: () => Config,
  name: string,
  agent: Agent,
  env: Env = process.env,
): Promise<string[]> {
  const without = (why: string) => [`Tasks of ${name} that are under way were not replayed: ${why}`];
  try {
    const config = configured();
    const isKnown =
      readVariable(env, "GOOGLE_APPLICATION_CREDENTIALS") ?? readVariable(env, "FIRESTORE_EMULATOR_HOST");
    if (config.store !== "nats-kv" && !isKnown)
      return without("GOOGLE_APPLICATION_CREDENTIALS is not set here");
    await using deps = await wire(config, () => {});
    hostAuthorsCode(logger(false));
    return await wouldNotReplay(deps, name, agent);
  } catch (error) {
    return without(messageOf(error));
  }
}
