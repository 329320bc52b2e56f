import type { Platform } from "./choice.ts";

/** Versions of what only development needs, as they were tested together with this version of Pawl. */
export interface Pins {
  readonly development: Readonly<Record<string, string>>;
  /** Of packages of packages. */
  readonly overrides?: Readonly<Record<string, string>>;
  /** What Workers are like: as new as the workerd among them. */
  readonly compatibility: { readonly date: string; readonly flags: readonly string[] };
}

/** The same as Pawl's own: test/package/project.test.ts compares them. */
const current: Pins = {
  development: {
    "@types/node": "24.19.2",
    esbuild: "0.28.2",
    typescript: "7.0.2",
    vitest: "5.1.0",
    workerd: "1.20261023.1",
    wrangler: "4.156.0",
  },
  compatibility: { date: "2026-10-23", flags: ["global_fetch_strictly_public", "nodejs_als"] },
};

/** The last ones that run on Node 20. */
const older: Pins = {
  development: { ...current.development, vitest: "4.1.12" },
  // The same but for its digits; the newer one would warn of this Node.
  overrides: { "@nats-io/nuid": "2.0.3" },
  compatibility: current.compatibility,
};

/** With the last wrangler that runs on Node 20, and the workerd that it brings along. */
const olderWorkers: Pins = {
  ...older,
  development: { ...older.development, workerd: "1.20260424.1", wrangler: "4.85.0" },
  // By that date Node's own modules are not there by themselves.
  compatibility: { date: "2026-04-24", flags: ["global_fetch_strictly_public", "nodejs_compat"] },
};

export function pinsFor(nodeVersion: string, platform: Platform): Pins {
  const [major = 0, minor = 0] = nodeVersion.replace(/^v/, "").split(".").map(Number);
  const isOlder = major < 22 || (major === 22 && minor < 12) || major === 23 || major === 25;
  if (!isOlder) return current;
  return platform === "cloudflare" ? olderWorkers : older;
}

/** What authors' own code imports beside Pawl, and what functions of Google's platform are given there. */
export const LIBRARIES = { zod: "^4.6.7" };
export const PAWL = "^0.1.0";
