import { parseDuration } from "../values/duration.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Who reads a variable, as docs/settings.md says it. */
export const READERS = {
  library: "functions and commands",
  function: "functions",
  command: "commands",
  deploy: "deploy",
  local: "dev and tests",
  drill: "demo and drills",
} as const;
export type Reader = keyof typeof READERS;

/** One environment variable. An empty one is as good as none. */
export interface Variable {
  /** Completes "it should be …". */
  readonly form: string;
  /** Its first sentence stands in `pawl --help` too. */
  readonly meaning: string;
  readonly readBy: readonly Reader[];
  /** As one would set it. */
  readonly default?: string;
  /** What holds where it is not set, and no one text says it. */
  readonly unset?: string;
  /** What to do where a function or command finds that it is not set. */
  readonly required?: string;
  /** The field of `Settings` that it sets. */
  readonly sets?: string;
  /** Its value is shown nowhere, and a platform keeps it apart. */
  readonly secret?: true;
  /** Stands for a value that only the platform knows, when a deploy checks the rest. */
  readonly standIn?: string;
  /** Undefined where the text is not of its form. */
  readonly read: (text: string) => unknown;
  /** What is wrong with it, where "it should be …" does not say enough. */
  readonly wrong?: (text: string) => string | undefined;
}

const SHORTEST_SECRET = 16;

/** Of a secret, or of one of several keys in it. */
export function tooShort(what: string, secret: string): string | undefined {
  if (secret.length >= SHORTEST_SECRET) return undefined;
  return `${what} has ${secret.length} characters. Use ${SHORTEST_SECRET} or more, such as the output of: openssl rand -hex 32`;
}

export const text = (value: string): string => value;
export const wholeNumber = (value: string) => (/^-?\d+$/.test(value) ? Number(value) : undefined);
/** Of HTTP. It may have a place for an agent's name. */
export const address = (value: string) =>
  /^https?:\/\/\S+$/.test(value) && URL.canParse(forAnyone(value)) ? value : undefined;
const forAnyone = (url: string) => url.replaceAll("{agent}", "a");

/** A request can't have an identity in its address, and the error that says so would show it. */
export function identityIn(name: string, url: string, instead: string): string | undefined {
  const { username, password } = new URL(forAnyone(url));
  return username || password
    ? `${name} has a name or a password in it, which is not used. ${instead}`
    : undefined;
}

/** A number of the protocol that is a time. */
export function duration<const S extends string>(sets: S, byDefault: string, meaning: string) {
  const form = `a duration such as "${byDefault}"`;
  return { sets, default: byDefault, form, meaning, readBy: ["library"], read: parseDuration } as const;
}

/** A number of the protocol that counts something. */
export function integer<const S extends string>(sets: S, byDefault: string, form: string, meaning: string) {
  return { sets, default: byDefault, form, meaning, readBy: ["library"], read: wholeNumber } as const;
}
