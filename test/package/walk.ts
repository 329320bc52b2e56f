import { type SpawnOptions, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { ROOT } from "../../infra/project.ts";

/** The environment of somebody who has never heard of this repository: nothing of it is on the path. */
export function foreignEnv(): NodeJS.ProcessEnv {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(ROOT));
  const isOurs = (name: string) =>
    /^(npm_|PAWL_|VITEST|NODE_|NATS_|INIT_CWD)/.test(name) && !/^(npm_config_|PAWL_NATS_SERVER$)/.test(name);
  const rest = Object.entries(process.env).filter(([name]) => !isOurs(name));
  return { ...Object.fromEntries(rest), PATH: path.join(delimiter), CI: "true" };
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** `heard`: given each line of standard output; once it has said that this is enough, the program is told to stop. */
export function run(
  command: string,
  args: readonly string[],
  options: SpawnOptions,
  heard?: (line: string) => boolean | Promise<boolean>,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    const said = { out: "", err: "" };
    const stop = () => {
      // One that npm has started hears it as a terminal would have it: with its whole group.
      process.kill(options.detached ? -(child.pid as number) : (child.pid as number), "SIGINT");
    };
    child.stdout?.on("data", (chunk: Buffer) => {
      said.out += chunk.toString();
    });
    if (heard && child.stdout)
      createInterface(child.stdout).on("line", async (line) => {
        // What goes wrong in there is for the caller, who still has to see how the program ends.
        if (await Promise.resolve(heard(line)).catch(() => true)) stop();
      });
    child.stderr?.on("data", (chunk: Buffer) => {
      said.err += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...said }));
  });
}

/** The same, where it has to go well. */
export async function runs(...given: Parameters<typeof run>): Promise<Ran> {
  const ran = await run(...given);
  if (ran.code === 0) return ran;
  throw new Error(`${given[0]} ${given[1].join(" ")} ended with ${ran.code}:\n${ran.out}${ran.err}`);
}

export interface Packed {
  /** The tarball's path. */
  readonly tarball: string;
  readonly bytes: number;
  readonly unpacked: number;
  readonly files: readonly string[];
}

/** The package of this folder, as it would be published. Its scripts are Pawl's own, and run on Pawl's own Node. */
export async function pack(folder: string, into: string): Promise<Packed> {
  const env = { ...foreignEnv(), PATH: [join(ROOT, "node_modules/.bin"), process.env.PATH].join(delimiter) };
  const { out } = await runs("npm", ["pack", "--json", "--pack-destination", into], { cwd: folder, env });
  const [packed] = JSON.parse(out.slice(out.indexOf("["))) as [
    { filename: string; size: number; unpackedSize: number; files: { path: string }[] },
  ];
  return {
    tarball: join(into, packed.filename),
    bytes: packed.size,
    unpacked: packed.unpackedSize,
    files: packed.files.map(({ path }) => path),
  };
}

/** A folder outside of this repository, and gone afterwards. */
export async function elsewhere(): Promise<{ readonly folder: string } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-elsewhere-"));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

interface Locked {
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

/**
 * Installs without npm: the tarball, and of what it says it needs exactly that, hard-linked from this repository's own
 * node_modules. What a package forgot to name is not there.
 */
export async function linkInstall(folder: string, tarball: string, more: readonly string[]): Promise<void> {
  const modules = join(folder, "node_modules");
  const own = join(modules, "pawl");
  await mkdir(own, { recursive: true });
  await runs("tar", ["xzf", tarball, "-C", own, "--strip-components=1"], {});
  const { packages } = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Locked>;
  };
  const manifest = JSON.parse(await readFile(join(own, "package.json"), "utf8")) as Locked;
  const found = new Set<string>();
  const find = (name: string, from: string): void => {
    for (
      let at = from;
      ;
      at = at.includes("/node_modules/") ? at.slice(0, at.lastIndexOf("/node_modules/")) : ""
    ) {
      const place = `${at ? `${at}/` : ""}node_modules/${name}`;
      const locked = packages[place];
      if (locked && !found.has(place)) {
        found.add(place);
        const { dependencies, optionalDependencies, peerDependencies } = locked;
        for (const next of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
          find(next, place);
      }
      if (locked || at === "") return;
    }
  };
  for (const name of [...Object.keys(manifest.dependencies ?? {}), ...more]) find(name, "");
  for (const place of [...found].sort()) await hardLink(join(ROOT, place), join(folder, place));
}

async function hardLink(from: string, to: string): Promise<void> {
  // Of another platform's packages the lock knows, too.
  if (!isThere(from)) return;
  await mkdir(dirname(to), { recursive: true });
  const linked = await run("cp", ["-al", from, to], {});
  if (linked.code !== 0) await cp(from, to, { recursive: true });
}

function isThere(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}
