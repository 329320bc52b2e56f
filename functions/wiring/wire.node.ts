import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { type NatsConnection, wsconnect } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import {
  parseServiceAccount,
  type ServiceAccount,
  serviceAccountToken,
} from "../../shared/adapters/firestore/google-token.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import { webhook } from "../../shared/adapters/webhook.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { metered, storeMeter } from "../../shared/meter/meter.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { sealed } from "../../shared/seal/sealed.ts";
import { sealerOf } from "../../shared/seal/sealer.ts";
import { isWebSocket } from "../../shared/settings/servers.ts";
import { type Config, storeIdentity } from "./config.ts";
import { confinement, natsOptions, notConnected, OPERATOR, openKv, type Who } from "./connect.ts";
import { signIn } from "./sign-in.ts";
import { LAST_SPANS, tracedOf } from "./trace.ts";
import { triggers } from "./trigger.ts";
import { watchNats } from "./watch.ts";

export interface Wired extends Deps, AsyncDisposable {
  readonly nc: NatsConnection;
  /** Sends the wakes that are owed now, where nothing may run a moment later. */
  hurry(): void;
}

/** Node's wiring: NATS by TCP or WebSocket, and the store that the configuration names. */
export async function wire(config: Config, plainLog: Log, who: Who = OPERATOR): Promise<Wired> {
  const { settings } = config;
  const reaches = confinement(settings, who);
  const nc = await connectNats(config, who);
  try {
    // First: it refuses a server that is too old before anything is asked of it.
    const bus = await jetstreamBus(nc, settings, storeIdentity(config), {
      isConfined: reaches !== undefined,
    });
    void watchNats(nc, plainLog);
    const plain = await openStore(config, nc, plainLog, reaches);
    const meter = storeMeter(plain, plainLog);
    const { trace, log } = tracedOf(config, plainLog, meter, who);
    const sealer = sealerOf(config.sealKeys);
    const store = sealed(metered(plain, meter), sealer, log);
    // Hosts and process numbers repeat where instances are alike.
    const runner = `${hostname()}-${crypto.randomUUID().slice(0, 8)}-${process.pid}`;
    const { trigger, hurry, done } = triggers(config, log, signIn({ account: () => readKey(config) }));
    const close = async () => {
      await done();
      await trace?.close(LAST_SPANS);
      await meter.flush();
      await store.close();
      await bus.close();
    };
    const deps = { store, bus, clock: systemClock, log, settings, runner, trigger, hurry, meter, sealer, nc };
    const confined = reaches && { reaches };
    const notify = config.webhook && { notify: webhook(config.webhook) };
    return { ...deps, ...confined, ...notify, ...(trace && { trace }), [Symbol.asyncDispose]: close };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

export async function connectNats(
  { nats, settings }: Pick<Config, "nats" | "settings">,
  who: Who = OPERATOR,
): Promise<NatsConnection> {
  const { url, credsFile, creds } = nats;
  if (credsFile !== undefined) await readCreds(credsFile);
  const text = creds === undefined ? undefined : new TextEncoder().encode(creds);
  const source = credsFile === undefined ? text && (() => text) : renewable(credsFile);
  const options = natsOptions({ nats, settings }, source, who);
  try {
    return await (isWebSocket(url) ? wsconnect(options) : connect(options));
  } catch (error) {
    throw notConnected(error, url);
  }
}

/** The file's content at each connect; the last good one while it can't be read, because it is being written. */
function renewable(path: string): () => Uint8Array {
  let last = readFileSync(path);
  return () => {
    try {
      const now = readFileSync(path);
      if (now.includes("USER NKEY SEED")) last = now;
    } catch {
      // kept
    }
    return last;
  };
}

async function readCreds(path: string): Promise<void> {
  await readFile(path).catch((error: unknown) => {
    throw new PawlError("setting_invalid", `NATS_CREDS=${path} can't be read: ${messageOf(error)}`);
  });
}

async function openStore(
  config: Config,
  nc: NatsConnection,
  log: Log,
  confinedTo?: readonly string[],
): Promise<TaskStore> {
  const { store: kind, settings, project: projectId = "", emulatorHost } = config;
  const { namespace, requestTimeout } = settings;
  const where = {
    projectId,
    ...(config.database && { database: config.database }),
    namespace,
    requestTimeout,
  };
  switch (kind) {
    case "nats-kv":
      return openKv(nc, settings, log, confinedTo);
    case "firestore-rest": {
      if (emulatorHost)
        return firestoreRest({ ...where, origin: `http://${emulatorHost}`, token: async () => "owner" });
      const token = serviceAccountToken((await readKey(config)) as ServiceAccount);
      return firestoreRest({ ...where, token });
    }
    case "firestore": {
      // Even for an emulator the client would search the network for Google's metadata server, and warn.
      if (emulatorHost) process.env.METADATA_SERVER_DETECTION ??= "none";
      // Loaded only when chosen: it takes half a second.
      const { firestoreGrpc } = await import("../../shared/adapters/firestore/grpc.ts");
      const credentials = emulatorHost ? undefined : await readKey(config);
      const identity = emulatorHost ? { emulatorHost } : credentials && { credentials };
      const store = firestoreGrpc({ ...where, ...identity });
      // The client's first request blocks this process for as long as a lease may last: before there is one.
      await store.get("warm-up").catch(() => undefined);
      return store;
    }
    default:
      return kind satisfies never;
  }
}

export async function readKey({ key, keyFile }: Config): Promise<ServiceAccount | undefined> {
  if (key !== undefined) return parseServiceAccount(key, "GOOGLE_APPLICATION_CREDENTIALS");
  if (keyFile === undefined) return undefined;
  const text = await readFile(keyFile, "utf8").catch((error: unknown) => {
    throw new PawlError(
      "setting_invalid",
      `GOOGLE_APPLICATION_CREDENTIALS=${keyFile} can't be read: ${messageOf(error)}`,
    );
  });
  return parseServiceAccount(text, keyFile);
}
