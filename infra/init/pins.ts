/** Versions of what only development needs, as they were tested together with this version of Pawl. */
export interface Pins {
  readonly development: Readonly<Record<string, string>>;
  /** Of packages of packages. */
  readonly overrides?: Readonly<Record<string, string>>;
  /** As new as the workerd among them. */
  readonly compatibilityDate: string;
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
  compatibilityDate: "2026-10-23",
};

/** The last ones that run on Node 20. */
const older: Pins = {
  development: {
    ...current.development,
    vitest: "4.1.12",
    workerd: "1.20260424.1",
    wrangler: "4.85.0",
  },
  // The same but for its digits; the newer one would warn of this Node.
  overrides: { "@nats-io/nuid": "2.0.3" },
  compatibilityDate: "2026-04-24",
};

export function pinsFor(nodeVersion: string): Pins {
  const [major = 0, minor = 0] = nodeVersion.replace(/^v/, "").split(".").map(Number);
  const isOlder = major < 22 || (major === 22 && minor < 12) || major === 23 || major === 25;
  return isOlder ? older : current;
}

/** What authors' own code imports beside Pawl, and what functions of Google's platform are given there. */
export const LIBRARIES = { zod: "^4.6.7" };
export const PAWL = "^0.1.0";
