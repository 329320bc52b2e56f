import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import type { Note } from "../../../infra/drills/outside/executions.ts";
import type { TestWorld } from "./stores.ts";

export type { Note } from "../../../infra/drills/outside/executions.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
export const AGENTS = path("../agents");
export const CLI = path("../../../infra/cli/main.ts");
const programs = inject("programs");

export interface Runner {
  readonly child: ChildProcess;
  readonly pid: number;
  /** What it printed so far. */
  text(): string;
  /** Resolves when a line that matches was printed. */
  says(pattern: RegExp, ms?: number): Promise<string>;
  readonly exited: Promise<number | NodeJS.Signals>;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

const alive = new Set<Runner>();

/** For those that a test left behind: see setup.ts. */
export async function killRunners(): Promise<void> {
  await Promise.all([...alive].map((runner) => runner.kill("SIGKILL")));
}

/** A file in which handlers write down what they did. */
export async function recordFile(): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), "pawl-test-")), "record.jsonl");
  writeFileSync(file, "");
  return file;
}

/** Handlers that write to this record go on until they are let go: the test decides when, and not the clock. */
export function holdHandlers(record: string): void {
  writeFileSync(`${record}.hold`, "");
}

export function letHandlersGo(record: string): void {
  rmSync(`${record}.hold`, { force: true });
}

export function notes(file: string): Note[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Note);
}

/** What a process of a test run shares with the others: see global.ts. */
export function ofThisRun(): NodeJS.ProcessEnv {
  const { TMPDIR, NODE_COMPILE_CACHE } = process.env;
  return { TMPDIR, NODE_COMPILE_CACHE };
}

export function startProcess(args: readonly string[], env: Record<string, string>, cwd?: string): Runner {
  const child = spawn(process.execPath, args, {
    ...(cwd && { cwd }),
    env: { PATH: process.env.PATH, ...ofThisRun(), PAWL_AGENTS_DIR: AGENTS, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  const listeners = new Set<() => void>();
  const hear = (chunk: Buffer) => {
    text += chunk.toString();
    for (const listener of listeners) listener();
  };
  child.stdout?.on("data", hear);
  child.stderr?.on("data", hear);
  const exited = new Promise<number | NodeJS.Signals>((resolve) =>
    child.on("close", (code, signal) => {
      alive.delete(runner);
      resolve(code ?? signal ?? -1);
      for (const listener of listeners) listener();
    }),
  );
  const runner: Runner = {
    child,
    pid: child.pid as number,
    text: () => text,
    says: (pattern, ms = 90_000) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const line = text.split("\n").find((one) => pattern.test(one));
          if (line === undefined && child.exitCode === null && child.signalCode === null) return;
          listeners.delete(check);
          clearTimeout(timer);
          if (line !== undefined) resolve(line);
          else reject(new Error(`the process ended without saying ${pattern}:\n${text}`));
        };
        const timer = setTimeout(() => {
          listeners.delete(check);
          reject(new Error(`not said within ${ms} ms: ${pattern}\n${text}`));
        }, ms);
        listeners.add(check);
        check();
      }),
    exited,
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await exited;
    },
  };
  alive.add(runner);
  return runner;
}

/** The real command, in one file. */
export function pawl(world: TestWorld, args: readonly string[], env: Record<string, string> = {}): Runner {
  return startProcess([programs.pawl, ...args], { ...world.env, PAWL_AGENTS_DIR: programs.agents, ...env });
}

/** The same loop, stopping dead at a boundary. */
export function pausedRunner(world: TestWorld, boundary: string, env: Record<string, string> = {}): Runner {
  const given = { ...world.env, PAWL_AGENTS_DIR: programs.agents, ...env };
  return startProcess([programs.drill, "recorder"], { ...given, PAWL_DRILL_PAUSE_AT: boundary });
}
