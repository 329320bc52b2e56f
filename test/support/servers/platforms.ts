import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Built, buildFunction } from "../../../infra/build/build.ts";
import { ROOT, type Target } from "../../../infra/build/targets.ts";
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

/** Builds into a folder of the test's own, inside the project so that packages are found. */
export function builds(): { build(name: string, target: Target): Promise<Built> } & Disposable {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const out = mkdtempSync(join(ROOT, "dist", "test-"));
  return {
    build: (name, target) => buildFunction(name, target, AGENTS, out),
    [Symbol.dispose]: () => rmSync(out, { recursive: true, force: true }),
  };
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
  const local = await startGcpFunction(built.folder, vars, hear);
  const { url, process } = local;
  const cron = async () => void (await post(url));
  const { pid, exited } = process;
  return { url, pid, exited, cron, log, [Symbol.asyncDispose]: () => process.stop() };
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
