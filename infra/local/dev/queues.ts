import { configFrom } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { ensureAgent } from "../../ensure.ts";
import type { DevAgent } from "./changes/plan.ts";

/** Makes sure of agents' queues, as a deploy does: of each lane once, and again when the lanes or the settings are others. */
export function queueKeeper() {
  const ensured = new Map<string, string>();
  return {
    ensure: async (agents: readonly DevAgent[], env: Env): Promise<void> => {
      const settings = JSON.stringify(env);
      const missing = agents.filter(({ name, lanes }) => ensured.get(name) !== `${lanes} ${settings}`);
      if (missing.length === 0) return;
      const config = configFrom(env);
      await using deps = await wire(config, () => {});
      for (const one of missing) {
        await ensureAgent(deps, config.store, one);
        ensured.set(one.name, `${one.lanes} ${settings}`);
      }
    },
  };
}
