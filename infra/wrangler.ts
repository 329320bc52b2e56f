import { required } from "./missing.ts";

/** What a wrangler.toml says, as wrangler itself reads it: loaded only where there is one. */
export function readWrangler(config: string, env?: string) {
  const { unstable_readConfig } = required("wrangler") as typeof import("wrangler");
  return unstable_readConfig({ config, ...(env && { env }) }, { hideWarnings: true });
}
