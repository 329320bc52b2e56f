import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { inject } from "vitest";
import { ofThisRun } from "./servers/runners.ts";

/** A project's folder, from which `pawl deploy` is run with programs that only pretend to be wrangler and gcloud. */
export interface DeployStage extends Disposable {
  readonly folder: string;
  write(file: string, text: string): void;
  read(file: string): string;
  /** A program of this name that writes down its arguments, and answers as told. */
  program(name: string, answers: string): void;
  /** What the programs were called with, in order. */
  calls(): string[];
  deploy(
    args: readonly string[],
    env?: Record<string, string>,
    cwd?: string,
  ): { readonly code: number | null; readonly out: string; readonly err: string };
}

/** `bundler`: whole bundles are built only where somebody looks at them. */
export function deployStage(bundler: "pawl" | "lightPawl" = "lightPawl"): DeployStage {
  const folder = mkdtempSync(join(tmpdir(), "pawl-deploy-test-"));
  mkdirSync(join(folder, "bin"));
  const read = (file: string) => readFileSync(join(folder, file), "utf8");
  return {
    folder,
    write: (file, text) => writeFileSync(join(folder, file), text),
    read,
    program: (name, answers) => {
      const path = join(folder, "bin", name);
      writeFileSync(path, `#!/bin/sh\necho "$*" >> '${folder}/calls'\n${answers}\n`);
      chmodSync(path, 0o755);
    },
    calls: () => read("calls").trim().split("\n"),
    deploy: (args, env = {}, cwd = folder) => {
      const PATH = [join(folder, "bin"), "/usr/bin", "/bin"].join(delimiter);
      const own = { PATH, HOME: folder, ...ofThisRun(), CI: "true", ...env };
      const pawl = inject("programs")[bundler];
      const result: SpawnSyncReturns<string> = spawnSync(process.execPath, [pawl, "deploy", ...args], {
        cwd,
        env: own,
        encoding: "utf8",
      });
      return { code: result.status, out: result.stdout, err: result.stderr };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export const WRANGLER = (url: string, more = "") => `name = "fleet"
compatibility_date = "2026-10-23"
[vars]
NATS_URL = "${url}"
PAWL_STORE = "firestore"
GOOGLE_CLOUD_PROJECT = "fleet-1"
${more}
[env.staging.vars]
NATS_URL = "${url}"
PAWL_STORE = "nats-kv"
`;

export const GCP = (url: string) =>
  `GOOGLE_CLOUD_PROJECT=fleet-1\nREGION=europe-west1\nNATS_URL=${url}\nPAWL_STORE=firestore\nSECRETS=NATS_CREDS\n`;
