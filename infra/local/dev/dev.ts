import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Env } from "../../../shared/settings/variable.ts";
import type { Tell } from "../find-nats.ts";
import { startStandIn } from "../stand-in/stand-in.ts";
import { startBell } from "./bell.ts";
import { type Functions, functionsIn } from "./functions.ts";
import { inStep } from "./in-step.ts";
import { claimProject } from "./lock.ts";
import { DEV_VARS, isDevVarsExposed, type Project, readSources, WRANGLER } from "./project.ts";
import { ringer } from "./ringer.ts";
import { scriptsFor } from "./scripts.ts";
import { forget, startServers } from "./servers.ts";

export interface DevOptions {
  readonly project: Project;
  readonly shell: Env;
  readonly cronEvery: number;
  /** Begins with empty stores. */
  readonly fresh: boolean;
  readonly tell: Tell;
  /** Every line that a function prints. */
  readonly hear: (line: string) => void;
}

/** The whole of Pawl on this machine. */
export interface DevStack extends AsyncDisposable {
  readonly urls: Readonly<Record<string, string>>;
  /** For commands that are to reach it, without the author's secrets; the file has these too. */
  readonly env: Readonly<Record<string, string>>;
  readonly envFile: string;
  /** With the reason, when something has died that can't be started again. */
  readonly failed: Promise<string>;
}

export async function startDev(options: DevOptions): Promise<DevStack> {
  const { project, shell, tell, hear } = options;
  const { state, agents } = project;
  await using started = new AsyncDisposableStack();
  started.use(claimProject(state));
  const failing = Promise.withResolvers<string>();
  const fail = (why: string) => failing.resolve(why);
  if (await isDevVarsExposed(project))
    tell(`! ${DEV_VARS} has secrets, and git does not ignore it: add it to .gitignore`);
  if (options.fresh) await forget(state);
  const sources = readSources(project, shell);
  const chosen = { ...sources.devVars, ...shell };
  const servers = started.use(await startServers({ state, chosen, tell, fail }));
  const scripts = scriptsFor(agents, tell);
  const standIn = started.use(await startStandIn(scripts.of));

  const runSecret = crypto.randomUUID();
  const ringing: { functions?: Functions } = {};
  const rings = started.use(ringer((name) => ringing.functions?.cron(name)));
  const bell = started.use(
    await startBell(runSecret, (name) => ringing.functions?.has(name) === true && rings.ring(name)),
  );
  const parts = { servers, standIn, runSecret, wakeUrl: bell.url, agentsFolder: agents };
  const step = inStep({ project, sources, shell, parts, scripts, tell });
  const wrangler = join(project.folder, WRANGLER);
  const functions = started.use(
    await functionsIn({
      folder: join(state, "functions"),
      ...(existsSync(wrangler) && { wrangler }),
      tell,
      hear,
      fail,
      started: (name) => rings.started(name, step.environment.settings.ackWait),
    }),
  );
  ringing.functions = functions;
  started.use(await step.begin(functions));
  const cron = setInterval(() => {
    for (const name of [...step.agents, "dispatch"]) rings.ring(name);
  }, options.cronEvery);
  started.defer(() => clearInterval(cron));
  const all = started.move();
  return {
    get urls() {
      return functions.urls;
    },
    env: step.environment.forCommands,
    envFile: step.envFile,
    failed: failing.promise,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
