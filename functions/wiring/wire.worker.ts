import { type NatsConnection, wsconnect } from "@nats-io/nats-core";
import { parseServiceAccount, serviceAccountToken } from "../../shared/adapters/firestore/google-token.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import { webhook } from "../../shared/adapters/webhook.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { metered, storeMeter } from "../../shared/meter/meter.ts";
import { systemClock } from "../../shared/ports/clock.ts";
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
import type { Wired } from "./wire.node.ts";

/** An edge runtime's wiring: NATS by WebSocket, Firestore by fetch. One per invocation: none outlives its request. */
export async function wire(config: Config, plainLog: Log, who: Who = OPERATOR): Promise<Wired> {
  const { nats, settings } = config;
  const reaches = confinement(settings, who);
  if (!isWebSocket(nats.url)) {
    throw invalid("NATS_URL should begin with wss:// here: an edge function reaches NATS by WebSocket only");
  }
  if (nats.credsFile)
    throw invalid("NATS_CREDS is a path, and there are no files here. Set it to the file's content");
  const { creds } = nats;
  const bytes = creds === undefined ? undefined : new TextEncoder().encode(creds);
  const nc = await wsconnect(natsOptions(config, bytes && (() => bytes), who)).catch((error: unknown) => {
    throw notConnected(error, nats.url);
  });
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
    const runner = `edge-${crypto.randomUUID().slice(0, 8)}`;
    const { trigger, hurry, done } = triggers(
      config,
      log,
      signIn({ account: async () => accountOf(config), metadata: null }),
    );
    const tell = async () => {
      await trace?.close(LAST_SPANS);
      await meter.flush();
    };
    const close = async () => {
      await Promise.all([done(), tell()]);
      await bus.close();
    };
    return {
      store,
      bus,
      clock: systemClock,
      log,
      settings,
      runner,
      trigger,
      hurry,
      meter,
      sealer,
      nc,
      ...(reaches && { reaches }),
      ...(config.webhook && { notify: webhook(config.webhook) }),
      ...(trace && { trace }),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/** Both Firestore stores are the same documents; here they are reached by REST. */
async function openStore(
  config: Config,
  nc: NatsConnection,
  log: Log,
  confinedTo?: readonly string[],
): Promise<TaskStore> {
  const { settings, project: projectId = "", emulatorHost, keyFile } = config;
  if (config.store === "nats-kv") return openKv(nc, settings, log, confinedTo);
  const { namespace, requestTimeout } = settings;
  const { database } = config;
  const options = { projectId, ...(database && { database }), namespace, requestTimeout };
  if (emulatorHost)
    return firestoreRest({ ...options, origin: `http://${emulatorHost}`, token: async () => "owner" });
  const account = accountOf(config);
  if (account === undefined) {
    const is = keyFile ? "is a path, and there are no files here" : "is not set";
    throw invalid(
      `GOOGLE_APPLICATION_CREDENTIALS ${is}. Set it to the content of a service account's key file`,
    );
  }
  return firestoreRest({ ...options, token: serviceAccountToken(account) });
}

function accountOf({ key }: Config) {
  return key === undefined ? undefined : parseServiceAccount(key, "GOOGLE_APPLICATION_CREDENTIALS");
}

function invalid(message: string): PawlError {
  return new PawlError("setting_invalid", message);
}
