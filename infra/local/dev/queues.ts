import { configFrom } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { ensureQueue, queueOf } from "../../../shared/dispatch/dispatch.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import type { DevAgent } from "./changes/plan.ts";

/** Makes sure of agents' queues, as a deploy does: of each lane once, and again when the lanes or the settings are others. */
export function queueKeeper() {
  const ensured = new Map<string, string>();
  return {
    ensure: async (agents: readonly DevAgent[], env: Env): Promise<void> => {
      const settings = JSON.stringify(env);
      const missing = agents.filter(({ name, lanes }) => ensured.get(name) !== `${lanes} ${settings}`);
      if (missing.length === 0) return;
      await using deps = await wire(configFrom(env), () => {});
      for (const { name, lanes } of missing) {
        for (let lane = 0; lane < lanes; lane++)
          await ensureQueue(deps, queueOf(deps, { agent: name, lane }), "correct");
        ensured.set(name, `${lanes} ${settings}`);
      }
    },
  };
}
