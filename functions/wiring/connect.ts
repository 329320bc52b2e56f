import { type ConnectionOptions, credsAuthenticator, type NatsConnection } from "@nats-io/nats-core";
import { natsKv } from "../../shared/adapters/kv/nats-kv.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { withPatience } from "../../shared/retry/patience.ts";
import { natsServers } from "../../shared/settings/servers.ts";
import { defaults, type Settings, timing } from "../../shared/settings/settings.ts";
import type { Config } from "./config.ts";

/** The same connection on every platform; the transport is chosen by who connects. `creds`: asked at each connect. */
export function natsOptions(
  { nats, settings }: Pick<Config, "nats" | "settings">,
  creds?: () => Uint8Array,
): ConnectionOptions {
  const { url, user, password } = nats;
  return {
    servers: [...natsServers(url)],
    name: "pawl",
    // A server that does not offer TLS is refused, before any password is sent.
    ...(/\btls:/.test(url) && { tls: {} }),
    maxReconnectAttempts: -1,
    // A password that is being rotated is a reason to try again, not to live on without a connection.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    // Otherwise every request takes down where it was asked, for the one in thousands that fails: our errors say it.
    noAsyncTraces: true,
    // Not cut short with a short lease: while there is no connection, a slow server is better than none.
    timeout: Math.max(settings.requestTimeout, defaults.requestTimeout),
    ...halfOpen(settings),
    ...(creds && { authenticator: credsAuthenticator(creds) }),
    ...(user !== undefined && { user, pass: password }),
  };
}

/** A connection that is open on our side only must be noticed before the lease ends, not after six minutes. */
function halfOpen(settings: Settings): Pick<ConnectionOptions, "pingInterval" | "maxPingOut"> {
  return { pingInterval: Math.floor(timing(settings).leaseTime / 4), maxPingOut: 2 };
}

/** Who connects in the seconds of an election waits for it, as whoever is connected does. */
export function openKv(nc: NatsConnection, settings: Settings, log: Log): Promise<TaskStore> {
  return withPatience({ clock: systemClock, log }, "store_unavailable", () => natsKv(nc, settings));
}

export function notConnected(error: unknown, url: string): PawlError {
  const reason = messageOf(error);
  const isRefused = isAuth(reason);
  return new PawlError(
    isRefused ? "bus_refused" : "bus_unavailable",
    isRefused
      ? `NATS at ${url} refused the identity: ${reason}. Check NATS_CREDS, or NATS_USER and NATS_PASSWORD`
      : `NATS at ${url} can't be reached: ${reason}. Check NATS_URL and that the server runs`,
    { cause: error },
  );
}

/** Whether these words of a server are about who we are. */
export function isAuth(words: string): boolean {
  return /authorization|authentication/i.test(words);
}
