import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join, relative } from "node:path";
import { inject } from "vitest";
import { type Built, buildFunction } from "../../../infra/build/build.ts";
import type { Target } from "../../../infra/build/targets.ts";
import { startGcpFunction } from "../../../infra/local/functions-framework.ts";
import { startWorkerd } from "../../../infra/local/workerd.ts";
import { AGENTS } from "./runners.ts";
import type { TestWorld } from "./stores.ts";

export const SECRET = "a-secret-of-the-tests";

/** A function of ours on a platform, as a process of its own. */
export interface Deployed extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<number | null>;
  /** As the platform's scheduler does it. */
  cron(): Promise<void>;
  log(): string;
}

const built = new Map<string, Promise<Built>>();

/** Of a function with the agents of test/support/agents: built once for a whole run, by whoever needs it first. */
export function bundle(name: string, target: Target): Promise<Built> {
  const key = `${target}/${name}`;
  const found = built.get(key) ?? leftOrBuilt(name, target);
  built.set(key, found);
  return found;
}

async function leftOrBuilt(name: string, target: Target): Promise<Built> {
  const { bundles } = inject("programs");
  const folder = join(bundles, target, name);
  const file = join(folder, "built.json");
  const left = () => JSON.parse(readFileSync(file, "utf8")) as Built;
  if (existsSync(file)) return left();
  mkdirSync(dirname(folder), { recursive: true });
  const own = mkdtempSync(`${bundles}-`);
  const made = await buildFunction(name, target, AGENTS, own);
  const moved = { ...made, folder, file: join(folder, relative(made.folder, made.file)) };
  writeFileSync(join(made.folder, "built.json"), JSON.stringify(moved));
  try {
    renameSync(made.folder, folder);
  } catch (error) {
    // Of two at once the first has left the same.
    if (!existsSync(file)) throw error;
  }
  return left();
}

/** What a function's environment would be: Workers reach NATS by WebSocket. */
export function varsOf(
  world: TestWorld,
  target: Target,
  more: Record<string, string> = {},
): Record<string, string> {
  const NATS_URL = target === "cloudflare" ? world.nats.wsUrl : world.nats.url;
  return { ...world.env, NATS_URL, PAWL_RUN_SECRET: SECRET, ...more };
}

export async function deploy(built: Built, vars: Record<string, string>): Promise<Deployed> {
  const lines: string[] = [];
  const hear = (line: string) => void lines.push(line);
  const log = () => lines.join("\n");
  if (built.target === "cloudflare") {
    const workerd = await startWorkerd([built], { vars, hear });
    const { pid, exited } = workerd;
    const cron = async () => void (await workerd.cron(built.name));
    const url = workerd.urls[built.name] as string;
    return { url, pid, exited, cron, log, [Symbol.asyncDispose]: () => workerd[Symbol.asyncDispose]() };
  }
  // Google's framework and client are compiled once for all of them.
  const { NODE_COMPILE_CACHE = "" } = process.env;
  const local = await startGcpFunction(built.folder, { NODE_COMPILE_CACHE, ...vars }, hear);
  const { url } = local;
  const cron = async () => void (await post(url));
  const { pid, exited, stop } = local.process;
  return { url, pid, exited, cron, log, [Symbol.asyncDispose]: stop };
}

export function post(
  url: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  const authorised = { authorization: `Bearer ${SECRET}`, ...headers };
  return fetch(`${url}/run`, { method: "POST", headers: authorised, ...(signal && { signal }) });
}

export interface Witness extends AsyncDisposable {
  readonly url: string;
  readonly seen: string[];
  /** Keeps whoever tells it of such a step waiting, until it is let go. */
  hold(step: RegExp): { letGo(): void };
}

/** A server outside, that remembers which steps it was told of. */
export async function witness(): Promise<Witness> {
  const seen: string[] = [];
  const held = new Map<RegExp, Promise<void>>();
  const server = createServer(async (request, response) => {
    const step = (request.url ?? "").slice(1);
    seen.push(step);
    for (const [pattern, gone] of held) if (pattern.test(step)) await gone;
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    hold: (step) => {
      const gone = Promise.withResolvers<void>();
      held.set(step, gone.promise);
      return {
        letGo: () => {
          held.delete(step);
          gone.resolve();
        },
      };
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
