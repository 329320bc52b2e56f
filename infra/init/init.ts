import { spawn } from "node:child_process";
import { basename, join, relative, resolve } from "node:path";
import { PawlError } from "../../shared/errors/errors.ts";
import { ask } from "./ask.ts";
import { type Choice, checkOneOf, checkProjectName, PLATFORMS, STORES, USUAL } from "./choice.ts";
import { filesOf } from "./files.ts";
import { pinsFor } from "./pins.ts";
import { type Written, writeFiles } from "./write.ts";

/** As on the command line. */
export interface InitOptions {
  readonly platform?: string;
  readonly store?: string;
  /** Asks nothing. */
  readonly yes?: boolean;
  readonly install?: boolean;
  /** Where the package pawl comes from: a version, or the path of a tarball. */
  readonly pawl?: string;
  readonly json?: boolean;
}

export interface Initialised extends Written, Choice {
  readonly folder: string;
  readonly installed: boolean;
}

/** Makes a project in the folder of this name, or in this one: ".". What is there stays as it is. */
export async function init(given: string | undefined, options: InitOptions): Promise<Initialised> {
  const isHere = given === ".";
  // Of a folder that is there already, the name that comes nearest to its own will do.
  const name = isHere ? nearest(basename(resolve("."))) : given && checkProjectName(given);
  const asked = {
    ...(name && { name }),
    ...(options.platform !== undefined && {
      platform: checkOneOf("--platform", PLATFORMS, options.platform),
    }),
    ...(options.store !== undefined && { store: checkOneOf("--store", STORES, options.store) }),
  };
  const choice = options.yes || options.json ? { ...USUAL, ...asked } : await asking(asked);
  const folder = isHere ? resolve(".") : resolve(choice.name);
  const pawl =
    options.pawl && (/[/\\]|\.tgz$/.test(options.pawl) ? `file:${resolve(options.pawl)}` : options.pawl);
  const files = filesOf(choice, pinsFor(process.version, choice.platform), pawl || undefined);
  const written = await writeFiles(folder, files);
  const installs = options.install ?? true;
  if (installs) await npmInstall(folder, options.json ?? false);
  return { ...choice, folder, ...written, installed: installs };
}

async function asking(given: Partial<Choice>): Promise<Choice> {
  const { name, platform, store } = given;
  if (name && platform && store) return { name, platform, store };
  if (process.stdin.isTTY) return ask(given);
  throw new PawlError("usage", "Nobody is there to be asked: give --yes, or a name, --platform and --store");
}

function nearest(folder: string): string {
  const plain = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 40);
  return plain.replaceAll(/^[^a-z]+|-+$/g, "") || USUAL.name;
}

/** Its own output is for people; where a machine reads ours it goes to standard error. */
function npmInstall(folder: string, isQuiet: boolean): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn("npm", ["install"], {
      cwd: folder,
      stdio: ["ignore", isQuiet ? 2 : 1, 2],
    });
    const failed = (why: string) =>
      fail(
        new PawlError("usage", `npm install in ${folder} ${why}. The files are written: run it again there`),
      );
    child.on("error", ({ message }) => failed(`can't be started: ${message}`));
    child.on("close", (code) => (code === 0 ? done() : failed(`ended with ${code}`)));
  });
}

/** What whoever ran it is told. */
export function told({ folder, wrote, kept, added, installed }: Initialised): readonly string[] {
  const at = relative(process.cwd(), folder);
  const list = (files: readonly string[]) => files.map((file) => join(at, file)).join(", ");
  const steps = [...(at ? [`cd ${at}`] : []), ...(installed ? [] : ["npm install"])];
  return [
    ...(wrote.length > 0 ? [`wrote ${list(wrote)}`] : []),
    ...(added.length > 0 ? [`added to ${join(at, "package.json")}: ${added.join(", ")}`] : []),
    ...(kept.length > 0 ? [`kept as ${kept.length > 1 ? "they were" : "it was"}: ${list(kept)}`] : []),
    "Now:",
    ...steps.map((step) => `  ${step}`),
    "  npm run first    # servers and every function on this machine, and a first task",
    "  npm test         # the agent in memory, through a crash at every point",
  ];
}
