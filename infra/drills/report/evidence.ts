import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findNatsServer } from "../../local/find-nats.ts";
import { PACKAGE } from "../../project.ts";
import type { Drill } from "../drill.ts";
import { promises } from "../facts.ts";
import type { Result } from "../run.ts";
import type { Servers } from "../stage/servers.ts";
import { asJson } from "./list.ts";
import { verdictLine } from "./text.ts";

/** What is kept of a run: who reads it later was not there. */
export interface Evidence {
  readonly date: string;
  readonly seconds: number;
  readonly where: string;
  readonly verdict: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly promises: Readonly<Record<string, string>>;
  readonly results: readonly Result[];
  /** Drills that can't be run there. */
  readonly left: readonly Drill[];
}

export async function evidenceOf(
  results: readonly Result[],
  {
    begun,
    servers,
    left,
  }: { readonly begun: number; readonly servers: Servers; readonly left: readonly Drill[] },
): Promise<Evidence> {
  return {
    date: new Date(begun).toISOString(),
    seconds: Math.round((Date.now() - begun) / 1000),
    where: servers.name,
    settings: servers.settings,
    verdict: verdictLine(results),
    versions: await versionsOf(servers),
    promises,
    results,
    left,
  };
}

async function versionsOf({ isOurs }: Servers): Promise<Record<string, string>> {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as {
    version: string;
  };
  const own = { Pawl: version, Node: process.version, system: `${process.platform} ${process.arch}` };
  if (!isOurs) return own;
  const { stdout } = await promisify(execFile)(await findNatsServer(), ["--version"]);
  return { ...own, "nats-server": stdout.trim().replace(/^nats-server: /, "") };
}

/** A result for machines: a drill by what is known of it, not by its code. */
export function resultJson({ drill, ...result }: Result) {
  return { ...asJson(drill), ...result };
}
