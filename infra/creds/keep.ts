import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

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

export async function keeping(folder: string): Promise<Kept> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
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
      try {
        // Two runs at once must not each have a key of its own.
        await writeFile(path, `${text}\n`, { mode: PRIVATE, flag: "wx" });
        written.push(file);
        return text;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        reused.push(file);
        return (await readFile(path, "utf8")).trim();
      }
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
