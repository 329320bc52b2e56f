import { type ConnectionOptions, credsAuthenticator, type NatsConnection } from "@nats-io/nats-core";
import { openNatsKv } from "../../shared/adapters/kv/open.ts";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { withPatience } from "../../shared/retry/patience.ts";
import { natsServers } from "../../shared/settings/servers.ts";
import { defaults, type Settings, timing } from "../../shared/settings/settings.ts";
import { inboxPrefix } from "../../shared/task/names.ts";
import type { Config } from "./config.ts";

/** Which part of Pawl connects, where each has an identity of its own. */
export interface Who {
  /** A function's name, or `operator` for commands. */
  readonly name: string;
  /** It runs an agent's tasks: that agent, and those that it submits to or that submit to it. */
  readonly reaches?: readonly string[];
}

export const OPERATOR: Who = { name: "operator" };

/** The agents that an identity is confined to, its own first; undefined where it is not. */
export function confinement(settings: Settings, { reaches }: Who): readonly string[] | undefined {
  return settings.isolation === "accounts" ? reaches : undefined;
}

/** The same connection on every platform; the transport is chosen by who connects. `creds`: asked at each connect. */
export function natsOptions(
  { nats, settings }: Pick<Config, "nats" | "settings">,
  creds?: () => Uint8Array,
  { name }: Who = OPERATOR,
): ConnectionOptions {
  const { url, user, password } = nats;
  return {
    servers: [...natsServers(url)],
    name: "pawl",
    ...(settings.isolation === "accounts" && { inboxPrefix: inboxPrefix(settings, name) }),
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
export function openKv(
  nc: NatsConnection,
  settings: Settings,
  log: Log,
  confinedTo?: readonly string[],
): Promise<TaskStore> {
  const open = () => openNatsKv(nc, settings, confinedTo);
  return withPatience({ clock: systemClock, log }, "store_unavailable", open);
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
