import { execFile } from "node:child_process";
import { access, constants, mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { NotHere } from "../bench.ts";

const run = promisify(execFile);

/** On the PATH, or in a folder where Debian keeps it; else installed with apt-get, where that is possible. */
export async function findProgram(program: string, pack: string): Promise<string> {
  const found = await lookFor(program);
  if (found) return found;
  const how = `Install it (apt-get install ${pack}), so that ${program} is on the PATH`;
  if (process.getuid?.() !== 0) throw new NotHere(`There is no ${program}. ${how}`);
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    await run("apt-get", ["install", "-y", "--no-install-recommends", pack], { env });
  } catch (error) {
    throw new NotHere(`There is no ${program}, and apt-get could not install it: ${error}. ${how}`);
  }
  const installed = await lookFor(program);
  if (installed) return installed;
  throw new NotHere(`apt-get installed ${pack}, and there is no ${program}. ${how}`);
}

async function lookFor(program: string): Promise<string | undefined> {
  const debian = "/usr/lib/postgresql";
  const versions = await readdir(debian).catch(() => []);
  const folders = [
    ...(process.env.PATH ?? "").split(delimiter),
    ...versions.toSorted().map((version) => join(debian, version, "bin")),
    "/usr/sbin",
  ];
  for (const folder of folders) {
    const path = join(folder, program);
    if (
      folder &&
      (await access(path, constants.X_OK).then(
        () => true,
        () => false,
      ))
    )
      return path;
  }
  return undefined;
}

/** As it says itself. */
export async function versionOf(path: string): Promise<string> {
  const { stdout } = await run(path, ["--version"]);
  return /\d+(\.\d+)+/.exec(stdout)?.[0] ?? "unknown";
}

/** Its own, and gone with the run's. */
export const dataFolder = (name: string) => mkdtemp(join(tmpdir(), `${name}-`));
