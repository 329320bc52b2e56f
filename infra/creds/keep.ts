import { randomBytes, randomUUID } from "node:crypto";
import * as disk from "node:fs/promises";
import { chmod, link, mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PawlError } from "../../shared/errors/errors.ts";

/** The folder that a run writes into. Keys and passwords that are there are used again, and never written over. */
export interface Kept {
  /** The text of a key's file, made where it is missing. */
  key(file: string, make: () => string): Promise<string>;
  /** What follows from plan and keys: written anew each time. */
  write(file: string, text: string): Promise<void>;
  /** Names of the files that are there now, and of the keys that were there before. */
  readonly written: readonly string[];
  readonly reused: readonly string[];
}

const PRIVATE = 0o600;
type Disk = Pick<typeof disk, "writeFile">;

/** `writeFile`: how the disk takes a file. */
export async function keeping(folder: string, { writeFile }: Disk = disk): Promise<Kept> {
  const isNew = (await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined;
  // It may lie in a repository. A folder that was there has its owner's rules.
  if (isNew) await writeFile(join(folder, ".gitignore"), "*\n", { mode: PRIVATE });
  const written: string[] = [];
  const reused: string[] = [];
  const at = async (file: string) => {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return path;
  };
  return {
    written,
    reused,
    key: async (file, make) => {
      const path = await at(file);
      const text = make();
      // It is there as a whole or not at all, whenever this dies; and two runs at once have the same one.
      const draft = `${path}.${randomUUID()}`;
      try {
        await writeFile(draft, `${text}\n`, { mode: PRIVATE, flag: "wx" });
        await link(draft, path);
        written.push(file);
        return text;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      } finally {
        await rm(draft, { force: true });
      }
      const kept = (await readFile(path, "utf8")).trim();
      if (kept.length < text.length)
        throw new PawlError(
          "setting_invalid",
          `${path} is shorter than a secret of its kind: remove it, and a new one is made`,
        );
      reused.push(file);
      return kept;
    },
    write: async (file, text) => {
      const path = await at(file);
      await writeFile(path, text, { mode: PRIVATE });
      // The mode is for new files only.
      await chmod(path, PRIVATE);
      written.push(file);
    },
  };
}

/** 256 bits. */
export const newPassword = (): string => randomBytes(32).toString("base64url");

/** What a function or command needs in its environment to be this identity. */
export function envText(variables: Readonly<Record<string, string>>): string {
  return Object.entries({ ...variables, PAWL_ISOLATION: "accounts" })
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}
