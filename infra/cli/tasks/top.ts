import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { type AgentQueues, agentQueues } from "../../../shared/dispatch/queues.ts";
import { isPawlError, messageOf } from "../../../shared/errors/errors.ts";
import { readCounts } from "../../../shared/meter/meter.ts";
import { spentOf } from "../../../shared/meter/spent.ts";
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
    .description(
      "watch what is going on: queues, tasks that run, wait, are in doubt or failed last, dollars, counts",
    )
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
  /** What its model turns cost so far, in dollars. One that runs has said so with its last word, or its takeover. */
  readonly usd: number;
  readonly detail: string;
}

interface Picture {
  readonly at: number;
  readonly agents: readonly AgentQueues[];
  /** The last changed first; `more`: there are others. */
  readonly tasks: Readonly<Record<Watched, { readonly newest: readonly Seen[]; readonly more: boolean }>>;
  /** Dollars that model turns of today cost, in UTC, by agent: what its runners have counted so far. */
  readonly spentToday: Readonly<Record<string, number>>;
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
    listed("running").then((page) => withJournals(deps, page)),
    listed("waiting"),
    listed("in_doubt"),
    listed("failed"),
  ]);
  const counts: Record<string, number> = {};
  for (const [series, count] of Object.entries(counted)) {
    const name = /^pawl_(\w+)_total/.exec(series)?.[1];
    // What is kept beside the counters: the dollars of days.
    if (name === undefined) continue;
    counts[name] = (counts[name] ?? 0) + count;
  }
  const spentToday = Object.fromEntries(spentOf(counted, at).agents);
  return { at, agents, tasks: { running, waiting, in_doubt, failed }, spentToday, counts };
}

/** What runs has paid more than its document says: its journal's head has it. */
async function withJournals(
  { store }: Deps,
  page: { newest: Seen[]; more: boolean },
): Promise<{ newest: Seen[]; more: boolean }> {
  const newest = page.newest.map(async (seen) => {
    const head = (await store.getHead(seen.id).catch(() => undefined))?.head;
    return { ...seen, usd: Math.max(seen.usd, head?.spent.usd ?? 0) };
  });
  return { ...page, newest: await Promise.all(newest) };
}

function seen(task: Task, now: number): Seen {
  const { id, agent, updatedAt, spent } = task;
  const taken = task.history.findLast(({ event }) => ["claim", "takeover", "adopt"].includes(event));
  const since = task.state === "running" ? (taken?.at ?? updatedAt) : updatedAt;
  return { id, agent, for: Math.max(0, now - since), usd: spent.usd, detail: detail(task) };
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

function pictureLines({ agents, tasks, spentToday, counts }: Picture): string[] {
  const counted = Object.entries(counts).filter(([, count]) => count > 0);
  const number = (name: string, count: number) => (name.endsWith("usd") ? dollars(count) : Math.round(count));
  return [
    ...queueLines(agents),
    ...Object.entries(tasks).flatMap(([state, { newest, more }]) => {
      const rows = newest.map((one) => {
        return [one.id, one.agent, sayDuration(one.for), one.usd > 0 ? dollars(one.usd) : "-", one.detail];
      });
      const table = columns(["", "", "", "", ""], rows).slice(1);
      const heading = `${state.replace("_", " ")}: ${newest.length}${more ? " or more" : ""}`;
      return ["", heading, ...table.map((line) => `  ${line}`)];
    }),
    "",
    `spent today (UTC): ${
      Object.entries(spentToday)
        .map(([agent, usd]) => `${agent} ${dollars(usd)}`)
        .join(", ") || "nothing"
    }`,
    `counted: ${counted.map(([name, count]) => `${name} ${number(name, count)}`).join(", ") || "nothing yet"}`,
  ];
}
