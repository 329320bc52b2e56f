import { execFileSync } from "node:child_process";
import { cpus, loadavg, totalmem } from "node:os";
import { findNatsServer } from "../infra/local/find-nats.ts";
import { peerVersions } from "./peers/peers.ts";

/** What figures were measured on and with: enough to judge them by, and nothing that tells whose machine it is. */
export interface Machine {
  /** In UTC, to the minute. */
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Of the minute before, what else the machine was doing; and of the last minute, the bench included. */
  readonly load: { readonly before: number; readonly after: number };
  readonly versions: Readonly<Record<string, string>>;
}

/** Asked before; what it returns completes it when all is over. */
export async function machineNow(hasPeers: boolean): Promise<() => Machine> {
  const load = () => Math.round((loadavg()[0] as number) * 10) / 10;
  const before = load();
  const said = execFileSync(await findNatsServer(), ["--version"]).toString();
  const machine = {
    date: new Date().toISOString().slice(0, 16),
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    versions: {
      Node: process.version.slice(1),
      "nats-server": /v([\d.]+)/.exec(said)?.[1] ?? "unknown",
      ...(hasPeers && (await peerVersions())),
    },
  };
  return () => ({ ...machine, load: { before, after: load() } });
}
