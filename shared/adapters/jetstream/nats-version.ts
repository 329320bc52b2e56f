import type { NatsConnection } from "@nats-io/nats-core";
import { PawlError } from "../../errors/errors.ts";

const LEAST = [2, 10] as const;
export const LEAST_SERVER = LEAST.join(".");

/** Whether a nats-server of this version keeps what it confirms. */
export function isEnough(version: string): boolean {
  const [, major = 0, minor = 0] = /^v?(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
}

/** Why nothing may be asked of the server that is connected now; none while there is no connection. */
export function tooOld(nc: Pick<NatsConnection, "info" | "getServer">): PawlError | undefined {
  if (!nc.info || isEnough(nc.info.version)) return undefined;
  return new PawlError(
    "server_too_old",
    `The nats-server at ${nc.getServer()} is version ${nc.info.version || "unknown"}, and ${LEAST_SERVER} is the least: older ones confirm acks before they are on disk, and bring finished messages back after a crash. Upgrade it`,
  );
}
