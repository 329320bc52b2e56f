import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Settings, settingsFrom } from "../../../shared/settings/settings.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { readVariable } from "../../../shared/settings/variables.ts";
import { type Emulator, HOW_TO_GET, isAnswering, startEmulator } from "../emulator.ts";
import type { Tell } from "../find-nats.ts";
import { type LocalNats, startNats } from "../nats-server.ts";
import type { DevAgent } from "./changes/plan.ts";
import { deaths, MOST_DEATHS } from "./deaths.ts";
import { identitiesIn, reload } from "./identities.ts";
import { untilEnded } from "./lock.ts";

const PROJECT = "pawl-dev";
const LOOK_EVERY = 5_000;

/** The servers behind the functions, and what leads to them. */
export interface Servers extends AsyncDisposable {
  /** For a function, which reaches NATS by WebSocket, as an identity of its own. */
  forFunction(name: string): Readonly<Record<string, string>>;
  /** For commands, which are the operator's. */
  readonly forCommands: Readonly<Record<string, string>>;
  /** Gives these agents identities, and takes them from all others. */
  identify(settings: Settings, agents: readonly DevAgent[]): Promise<void>;
}

export interface ServersOptions {
  /** Where they keep what has to survive. */
  readonly state: string;
  /** What the author chose: which store, which emulator. */
  readonly chosen: Env;
  readonly tell: Tell;
  /** Called once something died that can't be started again. */
  readonly fail: (why: string) => void;
}

/**
 * Documents are in NATS KV, which a nats-server on the same folder brings back, whatever ended it. The emulator keeps
 * them in memory, so with it everything begins anew.
 */
export async function startServers(options: ServersOptions): Promise<Servers> {
  const { state, tell } = options;
  await using started = new AsyncDisposableStack();
  let isEnding = false;
  const emulator = await chosenEmulator(options);
  if (emulator) started.use(emulator);
  const folder = join(state, "nats");
  if (!emulator) {
    await untilEnded(folder);
    await mkdir(folder, { recursive: true });
    tell(`Documents are kept in NATS KV, in ${state}: the next dev goes on from them`);
  }
  const keys = join(state, "creds");
  let identities = await identitiesIn(keys, settingsFrom(options.chosen), [], !emulator);
  const { config } = identities;
  const nats = started.use(await startNats({ tell, config, ...(!emulator && { folder }) }));
  const ending = () => isEnding;
  void keepNats(nats, options, ending);
  if (emulator) started.use(watchEmulator(emulator, options, ending));
  // Before any of them is stopped.
  started.defer(() => {
    isEnding = true;
  });
  const store: Record<string, string> = emulator
    ? { PAWL_STORE: "firestore", GOOGLE_CLOUD_PROJECT: PROJECT, FIRESTORE_EMULATOR_HOST: emulator.host }
    : { PAWL_STORE: "nats-kv" };
  const all = started.move();
  return {
    forFunction: (name) => ({ NATS_URL: nats.wsUrl, ...store, ...identities.of(name) }),
    get forCommands() {
      return { NATS_URL: nats.url, ...store, ...identities.of("operator") };
    },
    identify: async (settings, agents) => {
      const next = await identitiesIn(keys, settings, agents, !emulator);
      if (next.config !== identities.config) await reload(nats, next.config);
      identities = next;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Removes what was kept. */
export async function forget(state: string): Promise<void> {
  const folder = join(state, "nats");
  await untilEnded(folder);
  await rm(folder, { recursive: true, force: true });
}

async function chosenEmulator({ chosen, tell }: ServersOptions): Promise<Emulator | undefined> {
  const host = readVariable(chosen, "FIRESTORE_EMULATOR_HOST");
  const store = readVariable(chosen, "PAWL_STORE") ?? (host ? "firestore" : "nats-kv");
  if (store === "nats-kv") return undefined;
  const emulator = await startEmulator({ ...process.env, ...(host && { FIRESTORE_EMULATOR_HOST: host }) });
  if (emulator)
    tell("The Firestore emulator keeps documents in memory: what is done now is gone when it ends");
  else tell(`No Firestore emulator here, so documents are kept in NATS KV. Get it: ${HOW_TO_GET}`);
  return emulator;
}

/** A nats-server that died comes back on its ports and its folder, with all that was acknowledged. */
async function keepNats(
  nats: LocalNats,
  { tell, fail }: ServersOptions,
  isEnding: () => boolean,
): Promise<void> {
  const often = deaths();
  for (;;) {
    const code = await nats.exited;
    if (isEnding()) return;
    if (often()) return fail(`nats-server died ${MOST_DEATHS} times in a minute, the last time with ${code}`);
    tell(`! nats-server died (${code}). It is started again, on the same data`);
    try {
      await nats.restart();
      tell("nats-server is back");
    } catch (error) {
      if (isEnding()) return;
      return fail(`nats-server died and can't be started again: ${(error as Error).message}`);
    }
  }
}

/** One of ours that died took all documents along. One of others may come back. */
function watchEmulator(
  { pid, host, exited }: Emulator,
  { tell, fail }: ServersOptions,
  isEnding: () => boolean,
): Disposable {
  void exited.then((code) => {
    if (!isEnding())
      fail(
        `The Firestore emulator died (${code}), and its documents with it. Start dev again: it begins anew. With PAWL_STORE=nats-kv documents survive`,
      );
  });
  if (pid !== undefined) return { [Symbol.dispose]: () => {} };
  let wasThere = true;
  const timer = setInterval(async () => {
    const isThere = await isAnswering(host);
    if (isThere === wasThere || isEnding()) return;
    wasThere = isThere;
    if (isThere) tell(`The Firestore emulator at ${host} answers again`);
    else
      tell(
        `! The Firestore emulator at ${host} does not answer: no task can run until it does. Start it again`,
      );
  }, LOOK_EVERY);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
