import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { type AgentQueues, agentQueues } from "../../../shared/dispatch/queues.ts";
import { isPawlError, messageOf } from "../../../shared/errors/errors.ts";
import { readCounts } from "../../../shared/meter/meter.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import type { Task } from "../../../shared/task/document.ts";
import { dollars } from "../../../shared/values/dollars.ts";
import { parseDuration, sayDuration } from "../../../shared/values/duration.ts";
import { agentsFolder, type KnownAgent, knownAgents } from "../../agents.ts";
import { columns } from "../columns.ts";
import { logger, oneLine, printable, sayJson } from "../output.ts";
import { queueLines } from "./agents.ts";

interface Options {
  readonly every: string;
  readonly once?: boolean;
  readonly json?: boolean;
}

export function addTop(program: Command, config: () => Config): void {
  program
    .command("top")
    .description("watch what is going on: queues, tasks that run, wait, are in doubt or failed last, counts")
    .option("--every <duration>", "time between refreshes; each reads the store", "2s")
    .option("--once", "print once, then end; the default where the output is not a terminal")
    .option("--json", "one JSON object for each picture; times are milliseconds")
    .addHelpText("after", "\nCtrl-C ends it.\nExample:\n  pawl top --every 5s")
    .action(async ({ every, once, json = false }: Options, command: Command) => {
      const pause = parseDuration(every);
      if (!pause) command.error(`--every ${every} is not a duration; write it like 2s`);
      const agents = await knownAgents(agentsFolder());
      await using deps = await wire(config(), logger(json));
      if (once || !process.stdout.isTTY) {
        show(await look(deps, agents), json, false);
        return;
      }
      const stop = new AbortController();
      process.once("SIGINT", () => stop.abort());
      process.once("SIGTERM", () => stop.abort());
      while (!stop.signal.aborted) {
        show(await look(deps, agents).catch(away), json, true);
        await deps.clock.sleep(pause, stop.signal);
      }
    });
}

/** A server that comes back is waited for: the next picture may show it. */
function away(error: unknown): Away {
  if (!isPawlError(error) || error.disposition !== "retry") throw error;
  return { at: Date.now(), away: messageOf(error) };
}

interface Away {
  readonly at: number;
  readonly away: string;
}

type Watched = "running" | "waiting" | "in_doubt" | "failed";
const MOST = 10;

interface Seen {
  readonly id: string;
  readonly agent: string;
  /** How long it has been so. */
  readonly for: number;
  readonly detail: string;
}

interface Picture {
  readonly at: number;
  readonly agents: readonly AgentQueues[];
  /** The last changed first; `more`: there are others. */
  readonly tasks: Readonly<Record<Watched, { readonly newest: readonly Seen[]; readonly more: boolean }>>;
  /** All that was ever counted. */
  readonly counts: Readonly<Record<string, number>>;
}

async function look(deps: Deps, known: readonly KnownAgent[]): Promise<Picture> {
  const at = deps.clock.now();
  const listed = async (state: Watched) => {
    const { tasks, cursor } = await deps.store.list({ state }, MOST);
    return { newest: tasks.map((task) => seen(task, at)), more: cursor !== undefined };
  };
  const [agents, counted, running, waiting, in_doubt, failed] = await Promise.all([
    agentQueues(deps, known),
    readCounts(deps.store),
    listed("running"),
    listed("waiting"),
    listed("in_doubt"),
    listed("failed"),
  ]);
  const counts: Record<string, number> = {};
  for (const [series, count] of Object.entries(counted)) {
    const name = /^pawl_(\w+)_total/.exec(series)?.[1] ?? series;
    counts[name] = (counts[name] ?? 0) + count;
  }
  return { at, agents, tasks: { running, waiting, in_doubt, failed }, counts };
}

function seen(task: Task, now: number): Seen {
  const { id, agent, updatedAt } = task;
  const taken = task.history.findLast(({ event }) => ["claim", "takeover", "adopt"].includes(event));
  const since = task.state === "running" ? (taken?.at ?? updatedAt) : updatedAt;
  return { id, agent, for: Math.max(0, now - since), detail: detail(task) };
}

function detail(task: Task): string {
  switch (task.state) {
    case "running":
      return `${task.runner}${task.started ? "" : " (waiting for its turn)"}`;
    case "waiting":
      return `${task.waitingFor.join(", ")}${task.summary ? `: ${oneLine(task.summary).slice(0, 100)}` : ""}`;
    case "in_doubt":
      return `effect ${task.effect}`;
    case "failed":
      return `${task.error.code}: ${oneLine(task.error.message).slice(0, 100)}`;
    default:
      return "";
  }
}

function show(picture: Picture | Away, json: boolean, isWatched: boolean): void {
  if (json) sayJson(picture);
  else {
    const lines = ("away" in picture ? [picture.away] : pictureLines(picture)).map(printable);
    const title = `pawl top  ${new Date(picture.at).toISOString()}  Ctrl-C ends it`;
    process.stdout.write(isWatched ? screen([title, "", ...lines]) : `${lines.join("\n")}\n`);
  }
}

/** In place of what was there, in one go: a screen that is cleared first flickers. */
function screen(lines: readonly string[]): string {
  const { columns: width, rows: height } = process.stdout;
  // A line that wraps, or one too many, would push the first ones out of sight.
  const fitting = lines
    .slice(0, height ? height - 1 : undefined)
    .map((line) => line.slice(0, width || undefined));
  return `\u001b[2J\u001b[H${fitting.join("\n")}\n`;
}

function pictureLines({ agents, tasks, counts }: Picture): string[] {
  const counted = Object.entries(counts).filter(([, count]) => count > 0);
  const number = (name: string, count: number) => (name.endsWith("usd") ? dollars(count) : Math.round(count));
  return [
    ...queueLines(agents),
    ...Object.entries(tasks).flatMap(([state, { newest, more }]) => {
      const rows = newest.map((one) => [one.id, one.agent, sayDuration(one.for), one.detail]);
      const table = columns(["", "", "", ""], rows).slice(1);
      const heading = `${state.replace("_", " ")}: ${newest.length}${more ? " or more" : ""}`;
      return ["", heading, ...table.map((line) => `  ${line}`)];
    }),
    "",
    `counted: ${counted.map(([name, count]) => `${name} ${number(name, count)}`).join(", ") || "nothing yet"}`,
  ];
}
