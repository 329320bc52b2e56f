import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { messageOf } from "../../shared/errors/errors.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import { agentNames, loadAgent } from "../agents.ts";
import { buildFunction } from "../build/build.ts";
import { OWN_FUNCTIONS, ROOT } from "../build/targets.ts";
import { HOW_TO_GET, startEmulator } from "./emulator.ts";
import { type LocalModel, startModel, text } from "./model.ts";
import { startNats } from "./nats-server.ts";
import { startWorkerd } from "./workerd.ts";

/** The whole of Pawl on this machine. */
export interface DevStack extends AsyncDisposable {
  readonly urls: Readonly<Record<string, string>>;
  /** For commands that are to reach it. */
  readonly env: Readonly<Record<string, string>>;
  /** Bundles anew, and has workerd start over with them. A bundle that can't be built leaves the last good ones. */
  rebuild(): Promise<void>;
}

export async function startDev(
  agents: string,
  cronEvery: number,
  tell: (line: string) => void,
  hear: (line: string) => void,
): Promise<DevStack> {
  await using started = new AsyncDisposableStack();
  const nats = started.use(await startNats({ tell }));
  const emulator = await startEmulator();
  if (emulator) started.use(emulator);
  else tell(`No Firestore emulator here, so documents are kept in NATS KV. Get it: ${HOW_TO_GET}`);
  // A change cuts off what runs: here it is taken over within ten seconds, not within a minute.
  const timing = { PAWL_ACK_WAIT: "6s" };
  const store = emulator
    ? { PAWL_STORE: "firestore", GOOGLE_CLOUD_PROJECT: "pawl-dev", FIRESTORE_EMULATOR_HOST: emulator.host }
    : { PAWL_STORE: "nats-kv" };
  const model = await modelFor(tell);
  if (model) started.use(model);
  const key = model ? { ANTHROPIC_API_KEY: "stand-in", ANTHROPIC_BASE_URL: model.url } : ownModel();
  const secret = { PAWL_RUN_SECRET: crypto.randomUUID() };
  const names = await agentNames(agents);
  await ensureAll(names, agents, { NATS_URL: nats.url, ...timing, ...store });

  // A folder of its own: another one may run in the same project.
  await mkdir(join(ROOT, "dist"), { recursive: true });
  const out = await mkdtemp(join(ROOT, "dist", "dev-"));
  started.defer(() => rm(out, { recursive: true, force: true }));
  const functions = [...names, ...OWN_FUNCTIONS];
  const build = () => Promise.all(functions.map((name) => buildFunction(name, "cloudflare", agents, out)));
  const vars = { NATS_URL: nats.wsUrl, ...timing, ...store, ...secret, ...key };
  const workerd = started.use(await startWorkerd(await build(), { vars, watch: true, hear }));
  const timer = setInterval(() => {
    for (const name of [...names, "dispatch"])
      workerd.cron(name).catch((error: unknown) => tell(`cron of ${name}: ${messageOf(error)}`));
  }, cronEvery);
  started.defer(() => clearInterval(timer));
  const all = started.move();
  return {
    urls: workerd.urls,
    env: {
      NATS_URL: nats.url,
      ...timing,
      ...store,
      ...secret,
      PAWL_WAKE_URL: `${workerd.front}/{agent}/run`,
    },
    rebuild: async () => {
      const begun = Date.now();
      try {
        await build();
        tell(`rebuilt in ${Date.now() - begun} ms`);
      } catch (error) {
        tell(`not rebuilt: ${messageOf(error)}`);
      }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Without a key a stand-in answers, so that every agent runs; what it says is not worth reading. */
async function modelFor(tell: (line: string) => void): Promise<LocalModel | undefined> {
  if (readVariable(process.env, "ANTHROPIC_API_KEY")) return undefined;
  tell("ANTHROPIC_API_KEY is not set, so a stand-in answers for the model");
  return startModel(() => text("This is the stand-in: set ANTHROPIC_API_KEY to ask a model."));
}

function ownModel(): Record<string, string> {
  const key = readVariable(process.env, "ANTHROPIC_API_KEY");
  const url = readVariable(process.env, "ANTHROPIC_BASE_URL");
  return { ...(key && { ANTHROPIC_API_KEY: key }), ...(url && { ANTHROPIC_BASE_URL: url }) };
}

async function ensureAll(
  names: readonly string[],
  agents: string,
  env: Record<string, string>,
): Promise<void> {
  await using deps = await wire(configFrom(env), () => {});
  for (const name of names) {
    const { lanes } = (await loadAgent(name, agents)).limits;
    for (let lane = 0; lane < lanes; lane++)
      await ensureQueue(deps, queueOf(deps, { agent: name, lane }), "correct");
  }
}
