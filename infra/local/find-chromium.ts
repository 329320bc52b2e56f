import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import type { Tell } from "./find-nats.ts";

const run = promisify(execFile);
const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const LONGEST = 600_000;

/** Path of a Chromium for the dashboard's tests: PAWL_CHROMIUM, the PATH, or installed by Debian's apt if we are root. */
export async function findChromium(env: Env = process.env, tell: Tell = () => {}): Promise<string> {
  const named = readVariable(env, "PAWL_CHROMIUM");
  if (named) {
    if (await isExecutable(named)) return named;
    throw new PawlError("setting_invalid", `PAWL_CHROMIUM=${named} can't be run. It should be a Chromium`);
  }
  const found = await onPath(env);
  if (found) return found;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || !(await isExecutable("/usr/bin/apt-get"))) throw notFound();
  tell("Installing chromium with Debian's apt (once)");
  await install().catch((error: Error) => {
    throw notFound(`Debian's apt could not install it: ${error.message.split("\n").slice(0, 3).join(" ")}.`);
  });
  const installed = await onPath(env);
  if (installed) return installed;
  throw notFound("Debian's apt installed it somewhere else.");
}

/** Under a lock that the kernel gives back however its holder ends: of two at once, the second finds it done. */
async function install(): Promise<void> {
  const script =
    "command -v chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }";
  await run("flock", [join(tmpdir(), "pawl-chromium.lock"), "/bin/sh", "-c", script], {
    timeout: LONGEST,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}

async function onPath(env: Env): Promise<string | undefined> {
  const folders = (env.PATH ?? "").split(delimiter).filter(Boolean);
  for (const candidate of folders.flatMap((folder) => NAMES.map((name) => join(folder, name))))
    if (await isExecutable(candidate)) return candidate;
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function notFound(also = ""): PawlError {
  return new PawlError(
    "setting_invalid",
    `No Chromium on the PATH. ${also} Install one (Debian: apt-get install chromium), or set PAWL_CHROMIUM to its path`,
  );
}
