import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf } from "../../../shared/errors/errors.ts";
import type { Tell } from "../find-nats.ts";
import { isScript, type Script } from "../stand-in/stand-in.ts";
import type { Bundle } from "./changes/plan.ts";

export interface Scripts {
  of(agent: string): Script | undefined;
  load(built: Readonly<Record<string, Bundle>>): Promise<void>;
}

/** The scripts beside agents, each as it was last built. One that can't be loaded leaves the one of before. */
export function scriptsFor(agents: string, tell: Tell): Scripts {
  const loaded = new Map<string, Script & { readonly from: string }>();
  return {
    of: (agent) => loaded.get(agent),
    load: async (built) => {
      for (const agent of loaded.keys()) if (!built[agent]) loaded.delete(agent);
      for (const [agent, { file: from }] of Object.entries(built)) {
        const last = loaded.get(agent);
        if (last?.from === from) continue;
        const file = join(agents, `${agent}.model.ts`);
        try {
          const { default: script } = (await import(pathToFileURL(from).href)) as { default?: unknown };
          if (!isScript(script)) throw new Error("export a list of answers, or a function, as its default");
          loaded.set(agent, { script, file, from });
          if (last) await rm(last.from, { force: true });
          tell(`the stand-in answers ${agent} by ${file}`);
        } catch (error) {
          tell(`! ${file} is not used: ${messageOf(error)}`);
        }
      }
    },
  };
}
