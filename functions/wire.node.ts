import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import {
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection,
  wsconnect,
} from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { firestoreRest } from "../shared/adapters/firestore-rest.ts";
import {
  parseServiceAccount,
  type ServiceAccount,
  serviceAccountToken,
} from "../shared/adapters/google-token.ts";
import { jetstreamBus } from "../shared/adapters/jetstream.ts";
import { natsKv } from "../shared/adapters/nats-kv.ts";
import type { Deps } from "../shared/journey/deps.ts";
import { systemClock } from "../shared/ports/clock.ts";
import type { Log } from "../shared/ports/log.ts";
import type { TaskStore } from "../shared/ports/store.ts";
import { messageOf, PawlError } from "../shared/task/errors.ts";
import { type Settings, timing } from "../shared/task/settings.ts";
import type { Config } from "./config.ts";

export interface Wired extends Deps, AsyncDisposable {
  readonly nc: NatsConnection;
}

/** Node's wiring: NATS by TCP or WebSocket, and the store that the configuration names. */
export async function wire(config: Config, log: Log): Promise<Wired> {
  const { settings } = config;
  const nc = await connectNats(config);
  try {
    const store = await openStore(config, nc);
    const bus = await jetstreamBus(nc, settings);
    const runner = `${hostname()}-${process.pid}`;
    const close = async () => {
      await store.close();
      await bus.close();
    };
    return { store, bus, clock: systemClock, log, settings, runner, nc, [Symbol.asyncDispose]: close };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

export async function connectNats({
  nats,
  settings,
}: Pick<Config, "nats" | "settings">): Promise<NatsConnection> {
  const { url, credsFile, user, password } = nats;
  if (credsFile !== undefined) await readCreds(credsFile);
  const options: ConnectionOptions = {
    servers: url,
    name: "pawl",
    // A server that does not offer TLS is refused, before any password is sent.
    ...(/^tls:/.test(url) && { tls: {} }),
    maxReconnectAttempts: -1,
    // A password that is being rotated is a reason to try again, not to live on without a connection.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    timeout: settings.requestTimeout,
    ...halfOpen(settings),
    // Read again at each connect: the file may have been renewed.
    ...(credsFile !== undefined && { authenticator: credsAuthenticator(renewable(credsFile)) }),
    ...(user !== undefined && { user, pass: password }),
  };
  try {
    return await (/^wss?:/.test(url) ? wsconnect(options) : connect(options));
  } catch (error) {
    const reason = messageOf(error);
    const isAuth = /authorization|authentication/i.test(reason);
    throw new PawlError(
      isAuth ? "bus_refused" : "bus_unavailable",
      isAuth
        ? `NATS at ${shown(url)} refused the identity: ${reason}. Check NATS_CREDS, or NATS_USER and NATS_PASSWORD`
        : `NATS at ${shown(url)} can't be reached: ${reason}. Check NATS_URL and that the server runs`,
      { cause: error },
    );
  }
}

/** A connection that is open on our side only must be noticed before the lease ends, not after six minutes. */
function halfOpen(settings: Settings): Pick<ConnectionOptions, "pingInterval" | "maxPingOut"> {
  return { pingInterval: Math.floor(timing(settings).lease / 4), maxPingOut: 2 };
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

/** Without what might be a password. */
function shown(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//…@");
}

async function openStore(config: Config, nc: NatsConnection): Promise<TaskStore> {
  const { store: kind, settings, project: projectId = "", emulatorHost, keyFile } = config;
  const { namespace, requestTimeout } = settings;
  switch (kind) {
    case "nats-kv":
      return natsKv(nc, settings);
    case "firestore-rest": {
      const options = { projectId, namespace, requestTimeout };
      if (emulatorHost)
        return firestoreRest({ ...options, origin: `http://${emulatorHost}`, token: async () => "owner" });
      const token = serviceAccountToken(await readKey(keyFile as string));
      return firestoreRest({ ...options, token });
    }
    case "firestore": {
      // Even for an emulator the client would search the network for Google's metadata server, and warn.
      if (emulatorHost) process.env.METADATA_SERVER_DETECTION ??= "none";
      // Loaded only when chosen: it takes half a second.
      const { firestoreGrpc } = await import("../shared/adapters/firestore-grpc.ts");
      const key = keyFile && !emulatorHost ? { credentials: await readKey(keyFile) } : {};
      const identity = emulatorHost ? { emulatorHost } : key;
      const store = firestoreGrpc({ projectId, namespace, requestTimeout, ...identity });
      // Its first request blocks this process for as long as a lease may last: before there is one.
      await store.get("warm-up").catch(() => undefined);
      return store;
    }
    default:
      return kind satisfies never;
  }
}

async function readKey(path: string): Promise<ServiceAccount> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new PawlError(
      "setting_invalid",
      `GOOGLE_APPLICATION_CREDENTIALS=${path} can't be read: ${messageOf(error)}`,
    );
  });
  return parseServiceAccount(text, path);
}
