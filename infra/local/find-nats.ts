import { execFile } from "node:child_process";
import {
  access,
  constants,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { homedir, platform } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { isEnough } from "../../shared/adapters/jetstream/nats-version.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";

const run = promisify(execFile);
/** Debian releases whose nats-server is new enough, the newest first. */
const SUITES = ["forky", "trixie"];

export type Tell = (line: string) => void;

/** Path of a nats-server 2.10 or newer: PAWL_NATS_SERVER, the PATH, our cache, or fetched into it by Debian's apt. */
export async function findNatsServer(env: Env = process.env, tell: Tell = () => {}): Promise<string> {
  const named = readVariable(env, "PAWL_NATS_SERVER");
  if (named) {
    const version = await versionOf(named);
    if (isEnough(version)) return named;
    const found = version ? `is version ${version}` : "can't be run";
    throw new PawlError(
      "setting_invalid",
      `PAWL_NATS_SERVER=${named} ${found}. It should be a nats-server 2.10 or newer`,
    );
  }
  for (const folder of (env.PATH ?? "").split(delimiter)) {
    const candidate = join(folder, "nats-server");
    if (folder && (await isExecutable(candidate)) && isEnough(await versionOf(candidate))) return candidate;
  }
  const cached = join(cacheFolder(env), "nats-server");
  if (isEnough(await versionOf(cached))) return cached;
  return fetchFromDebian(cached, tell);
}

export function cacheFolder(env: Env = process.env): string {
  return join(readVariable(env, "XDG_CACHE_HOME") ?? join(homedir(), ".cache"), "pawl");
}

/** Empty where it can't be run. */
async function versionOf(binary: string): Promise<string> {
  try {
    const { stdout } = await run(binary, ["--version"]);
    return /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? "";
  } catch {
    return "";
  }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Apt verifies and downloads; nothing of the system is changed and no root is needed. */
async function fetchFromDebian(target: string, tell: Tell): Promise<string> {
  const sources = await debianSources();
  if (!sources || !(await isExecutable("/usr/bin/apt-get"))) throw notFound();
  const cache = join(target, "..");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "fetch-"));
  const problems: string[] = [];
  tell("Fetching nats-server with Debian's apt into the user's cache folder (once)");
  try {
    for (const suite of SUITES) {
      try {
        await fetchSuite(folder, sources, suite);
        await cp(join(folder, "x/usr/sbin/nats-server"), join(folder, "nats-server"));
        // Renamed into place whole: two processes that fetch at once don't hurt each other.
        await rename(join(folder, "nats-server"), target);
        return target;
      } catch (error) {
        problems.push(`${suite}: ${(error as Error).message.split("\n").slice(0, 3).join(" ")}`);
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  throw notFound(`Debian's apt could not fetch it either (${problems.join("; ")}).`);
}

async function fetchSuite(folder: string, sources: string, suite: string): Promise<void> {
  const list = join(folder, `${suite}.sources`);
  await writeFile(list, sources.replace(/^Suites:.*$/m, `Suites: ${suite}`));
  await mkdir(join(folder, "lists/partial"), { recursive: true });
  await mkdir(join(folder, "cache/archives/partial"), { recursive: true });
  const options = [
    `Dir::Etc::sourcelist=${list}`,
    "Dir::Etc::sourceparts=/dev/null",
    `Dir::State::lists=${join(folder, "lists")}`,
    `Dir::Cache=${join(folder, "cache")}`,
    "APT::Sandbox::User=",
  ].flatMap((option) => ["-o", option]);
  const at = { cwd: folder, timeout: 120_000 };
  await run("apt-get", [...options, "update"], at);
  await run("apt-get", [...options, "download", "nats-server"], at);
  const [deb] = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  await run("dpkg", ["-x", join(folder, deb as string), join(folder, "x")], at);
  await rm(join(folder, deb as string));
}

/** The machine's own entry for Debian's main archive, so that its mirror and keyring are used. */
async function debianSources(): Promise<string | undefined> {
  const files = ["/etc/apt/sources.list", ...(await list("/etc/apt/sources.list.d"))];
  for (const file of files) {
    const text = await readFile(file, "utf8").catch(() => "");
    if (file.endsWith(".sources")) {
      const entry = text
        .split(/\n\s*\n/)
        .find((part) => /^URIs:.*\/debian\/?\s*$/m.test(part) && /^Suites:/m.test(part));
      if (entry) return entry;
      continue;
    }
    const line = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+\/debian\/?)\s+\S+\s+main/m.exec(text);
    if (line) {
      const key = /signed-by=(\S+)/.exec(line[1] ?? "")?.[1];
      return `Types: deb\nURIs: ${line[2]}\nSuites: x\nComponents: main\n${key ? `Signed-By: ${key}\n` : ""}`;
    }
  }
  return undefined;
}

async function list(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [])).map((name) => join(folder, name));
}

function notFound(also = ""): PawlError {
  const how =
    platform() === "darwin"
      ? "brew install nats-server"
      : "install nats-server 2.10 or newer from your distribution or from the releases of nats-io/nats-server";
  return new PawlError(
    "setting_invalid",
    `No nats-server 2.10 or newer on the PATH. ${also} Get one: ${how}; or set PAWL_NATS_SERVER to its path`,
  );
}
