import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { configFrom } from "../../../functions/wiring/config.ts";
import { ROOT } from "../../../infra/project.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { SHARED, tempAgents } from "../temp-agents.ts";
import { until } from "../time/until.ts";
import { CLI, type Runner, startProcess } from "./runners.ts";
import { wired } from "./stores.ts";

/** Pawl's own, which names production's servers, and ends with its variables. */
const WRANGLER = `${readFileSync(join(ROOT, "wrangler.toml"), "utf8")}PAWL_REPLICAS = "3"\n`;

/** An author's project: a folder of its own, with agents that dev runs. For a whole test file. */
export function devProject(vars: string) {
  const folder = tempAgents();
  const agents = join(folder, "agents");
  mkdirSync(agents);
  writeFileSync(join(folder, "wrangler.toml"), WRANGLER + vars);
  /** As editors save: another file is put in the place of the old one. */
  const save = (name: string, text: string) => {
    writeFileSync(join(folder, `${name.replaceAll("/", "-")}.tmp`), text);
    renameSync(join(folder, `${name.replaceAll("/", "-")}.tmp`), join(folder, name));
  };
  const agent = (name: string, definition: string, imports = "") =>
    save(
      `agents/${name}.ts`,
      // Whoever brings all of zod along without need is built for twice as long.
      `import { defineAgent, tool } from "../${SHARED}/agent.ts";\n${definition.includes("z.") ? 'import * as z from "zod";\n' : ""}${imports}\nexport default defineAgent({ ${definition} });\n`,
    );
  const start = (env: Record<string, string> = {}, ...args: readonly string[]): Runner => {
    const { HOME = "", XDG_CACHE_HOME = "" } = process.env;
    const own = { PAWL_AGENTS_DIR: agents, PAWL_NATS_SERVER: inject("natsServer"), HOME, XDG_CACHE_HOME };
    return startProcess([CLI, "dev", "--json", "--cron-every", "1h", ...args], { ...own, ...env }, folder);
  };
  return { folder, agents, save, agent, start };
}

/** A dev that is ready, as its author and the users of its API see it. */
export async function readyDev(dev: Runner) {
  const ready = JSON.parse(await dev.says(/"ready":true/, 300_000)) as {
    urls: Record<string, string>;
    env: Record<string, string>;
    envFile: string;
  };
  const deps = await wired(configFrom(ready.env as Env));
  const token = await createToken(deps.store, {
    owner: "author",
    scopes: ["submit", "read", "operate"],
    createdAt: Date.now(),
  });
  const call = async (method: string, path: string, body?: unknown, headers = {}): Promise<Response> => {
    const init = {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    // An API that is being replaced refuses for a moment; to ask twice means the same.
    const asked = () => fetch(`${ready.urls.api}${path}`, init).catch(() => undefined);
    return until("the API answers", asked);
  };
  const state = async (id: string, wanted: string) =>
    until(
      `${id} is ${wanted}`,
      async () => {
        const task = (await deps.store.get(id))?.task;
        return task?.state === wanted && task;
      },
      // Cron is an hour away: who is not woken does not come in time.
      120_000,
    );
  /** Submitted by the API and completed: its result. */
  const run = async (agent: string, id: string, input: object = {}): Promise<unknown> => {
    const answer = await call("POST", "/v1/tasks", { agent, id, input });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    const task = await state(id, "completed");
    return task.state === "completed" ? task.result : undefined;
  };
  return { ...ready, deps, call, state, run, [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose]() };
}

export interface Process {
  readonly pid: number;
  readonly command: string;
}

/** All that a process has started, and what they have started. */
export function descendants(of: number): Process[] {
  const all = execFileSync("ps", ["-eo", "pid=,ppid=,command="], { encoding: "utf8", maxBuffer: 1 << 26 })
    .split("\n")
    .flatMap((line) => {
      const [, pid, parent, command = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
      return pid ? [{ pid: Number(pid), parent: Number(parent), command }] : [];
    });
  const under = (parent: number): Process[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...under(one.pid)]);
  return under(of).filter(({ command }) => !command.startsWith("ps -eo"));
}

/** Of a process: its memory in MB, and how long it has computed, in milliseconds (Linux only says it well enough). */
export function burden(pid: number): { readonly megabytes: number; readonly computed: number } {
  const rss = execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" });
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return { megabytes: Number(rss) / 1024, computed: (Number(fields[11]) + Number(fields[12])) * 10 };
}

/** The server itself, not its guard. */
export function serverOf(dev: Runner, pattern: RegExp): Process {
  const found = descendants(dev.pid).find(
    ({ command }) => pattern.test(command) && !/^(\/bin\/)?sh /.test(command),
  );
  if (!found) throw new Error(`there is no ${pattern} among the processes of dev`);
  return found;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
