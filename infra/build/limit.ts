import type { Metafile } from "esbuild";
import { PawlError } from "../../shared/errors/errors.ts";
import { kib } from "./targets.ts";

/** An agent's bundle for Workers, in KiB gzipped, unless package.json says more: start-up time follows size. */
const USUAL_LIMIT = 256;
/** As much as Cloudflare takes on its paid plan; on the free one it is 3 MB. */
const MOST = 10_240;

/** What package.json says under "pawl", as text. */
export function bundleLimit(manifest: string): number {
  const { pawl } = JSON.parse(manifest) as { pawl?: { bundleLimitKiB?: unknown } };
  const { bundleLimitKiB: limit = USUAL_LIMIT } = pawl ?? {};
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= MOST) return limit;
  throw new PawlError(
    "setting_invalid",
    `pawl.bundleLimitKiB in package.json is ${JSON.stringify(limit)}; it should be a whole number from 1 to ${MOST}, the most that Cloudflare takes`,
  );
}

export function checkSize(name: string, gzip: number, limit: number, metafile: Metafile): void {
  if (gzip <= limit * 1024) return;
  const next = Math.min(MOST, Math.ceil(gzip / 1024 / 256) * 256);
  throw new PawlError(
    "bundle_too_large",
    `${name} for Workers has ${kib(gzip)} KiB gzipped; ${limit} is the most. Largest inside: ${largest(metafile)}. To allow more, write into package.json: "pawl": { "bundleLimitKiB": ${next} }`,
  );
}

function largest({ outputs }: Metafile): string {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const hint = inputs.some(([path]) => path.includes("/zod/v4/locales/"))
    ? '. Write import * as z from "zod": import { z } brings all of its languages along'
    : "";
  const list = inputs
    .sort(([, a], [, b]) => b.bytesInOutput - a.bytesInOutput)
    .slice(0, 5)
    .map(([path, { bytesInOutput }]) => `${path} (${kib(bytesInOutput)} KiB)`)
    .join(", ");
  return list + hint;
}
