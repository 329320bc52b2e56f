import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import { messageOf, PawlError } from "../../../shared/errors/errors.ts";
import { deployVariables } from "../../../shared/settings/tools.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { missingPackage } from "../../missing.ts";
import { projectFolder } from "../../project.ts";
import { readWrangler } from "../../wrangler.ts";
import type { Sources } from "./variables.ts";

/** Where the author's files are, and dev's own. */
export interface Project {
  readonly folder: string;
  readonly agents: string;
  /** Dev's own: stores, bundles. Never part of the project's history. */
  readonly state: string;
}

export const WRANGLER = "wrangler.toml";
export const DEV_VARS = ".dev.vars";
const GCP_ENV = "gcp.env";

/** The folder that this runs in, if it has a wrangler.toml; else the project that it is in. */
export function projectIn(folder: string, agents: string): Project {
  const chosen = existsSync(join(folder, WRANGLER)) ? folder : projectFolder(folder);
  return { folder: chosen, agents, state: join(chosen, ".pawl", "dev") };
}

/** As they are now: both files may change while dev runs. */
export function readSources({ folder }: Project, shell: Env): Sources {
  const vars = { ...googleVars(join(folder, GCP_ENV)), ...wranglerVars(join(folder, WRANGLER)) };
  return { vars, devVars: envFile(join(folder, DEV_VARS)), shell };
}

function wranglerVars(config: string): Env {
  if (!existsSync(config)) return {};
  try {
    const { vars } = readWrangler(config);
    const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
    return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, text(value)]));
  } catch (error) {
    throw (
      missingPackage(error) ??
      new PawlError("setting_invalid", `${config}: ${messageOf(error)}`, { cause: error })
    );
  }
}

/** Of a project that is deployed to Google Cloud, without what only its deploys read. */
function googleVars(file: string): Env {
  return Object.fromEntries(Object.entries(envFile(file)).filter(([name]) => !(name in deployVariables)));
}

function envFile(file: string): Env {
  if (!existsSync(file)) return {};
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch (error) {
    throw new PawlError("setting_invalid", `${file} can't be read: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether secrets could be committed by mistake. Where there is no git, they can't. */
export async function isDevVarsExposed({ folder }: Project): Promise<boolean> {
  if (!existsSync(join(folder, DEV_VARS))) return false;
  const git = promisify(execFile)("git", ["check-ignore", "--quiet", DEV_VARS], { cwd: folder });
  return git.then(
    () => false,
    // 1: it is not ignored. Anything else: no repository, or no git.
    (error: { code?: unknown }) => error.code === 1,
  );
}
