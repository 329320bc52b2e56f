import type { Env } from "../../shared/settings/variable.ts";
import type { Built } from "../build/build.ts";
import type { FunctionKind, Target } from "../build/targets.ts";
import type { Commands } from "./commands.ts";

/** One function on its way to a platform. */
export interface Deployment {
  readonly function: string;
  readonly kind: FunctionKind;
  readonly built: Built;
  /** When the platform wakes it. None for the API, which answers requests. */
  readonly cron?: string;
  /** Names of the secrets that it is given. */
  readonly secrets: readonly string[];
  /** What it was built from, for PAWL_DEPLOYED. */
  readonly manifest: string;
  /** What is deployed now. */
  readonly before: Looked;
  /** Functions that may wake it, itself among them. */
  readonly wakers: readonly string[];
  readonly commands: Commands;
  readonly tell: (line: string) => void;
}

/** A function as its platform has it. */
export type Looked =
  | {
      readonly is: "there";
      /** What a rollback goes back to. */
      readonly revision: string;
      readonly at?: string;
      /** Without secrets. */
      readonly settings: Env;
      /** Names of secrets. */
      readonly secrets: readonly string[];
      /** Somebody went back to this one by hand: a newer one would get no requests. */
      readonly isPinned?: boolean;
    }
  | { readonly is: "none" }
  | { readonly is: "unknown"; readonly why: string };

/** What a platform knows of itself. */
export interface Platform {
  readonly target: Target;
  /** Settings as the function will see them, without secrets. Where they come from, for messages. */
  readonly settings: Env;
  readonly source: string;
  /** Of Pawl's own secrets: those that the project keeps there, beside what every project needs. */
  readonly kept: readonly string[];
  /** What the platform calls a function. */
  service(name: string): string;
  /** Why nobody can be asked. Throws where its program is not installed. */
  away(commands: Commands): Promise<string | undefined>;
  look(name: string, commands: Commands): Promise<Looked>;
  /** Those of these secrets that are there, or all that are there; or why that can't be known. */
  secretsThere(
    name: string,
    needed: readonly string[],
    commands: Commands,
  ): Promise<ReadonlySet<string> | { readonly problem: string }>;
  /** What else has to be there: each with the command that mends it. */
  missing(name: string, commands: Commands): Promise<readonly string[]>;
  /** A function's secret, as it is found on the platform. */
  secretName(name: string, secret: string): string;
  /** How a secret that is missing is set. */
  toSet(name: string, secret: string): string;
  /** What becomes of a secret that the function no longer declares. */
  toDrop(name: string, secret: string): string;
  /** The commands that bring a former revision back. */
  toGoBack(name: string, revision: string): readonly string[];
  /** Returns its address, or its name where that is not known. */
  deploy(deployment: Deployment): Promise<string>;
}

/** Asks, and takes what is wrong for an answer: a program that is not installed can't be asked. */
export async function asked<T>(ask: () => Promise<T>, unknown: (why: string) => T): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    return unknown(error instanceof Error ? error.message : String(error));
  }
}
