import { PawlError } from "../../shared/errors/errors.ts";

export const PLATFORMS = ["cloudflare", "gcp"] as const;
export const STORES = ["nats-kv", "firestore"] as const;
export type Platform = (typeof PLATFORMS)[number];
export type StoreName = (typeof STORES)[number];

/** What a new project is to be. */
export interface Choice {
  readonly name: string;
  readonly platform: Platform;
  readonly store: StoreName;
}

/** What is chosen where nobody is asked: what needs the fewest accounts. */
export const USUAL: Choice = { name: "my-agents", platform: "cloudflare", store: "nats-kv" };

/** It becomes a folder, a package and a part of Workers' names, and stands in shells' lines: nothing else is let through. */
export function checkProjectName(name: string): string {
  if (/^[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(name)) return name;
  throw new PawlError(
    "usage",
    `A project can't be named ${JSON.stringify(name.slice(0, 80))}: use a letter, then a-z 0-9 -, up to 40, such as my-agents`,
  );
}

export function checkOneOf<Name extends string>(what: string, names: readonly Name[], given: string): Name {
  const found = names.find((one) => one === given);
  if (found) return found;
  throw new PawlError(
    "usage",
    `${what} is ${JSON.stringify(given.slice(0, 80))}; it is one of ${names.join(", ")}`,
  );
}
