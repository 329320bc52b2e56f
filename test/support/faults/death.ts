import type { Agent } from "../../../shared/agent.ts";
import type { Head } from "../../../shared/journal/entries.ts";
import { serve } from "../../../shared/runner/serve.ts";
import { AGENT, type Bench } from "../bench.ts";
import { patiently } from "../time/until.ts";

/** What a dead process answers. */
export const dead = () => new Promise<never>(() => {});

/**
 * Runs an agent until its journal is such, and has it die there: from then on none of its requests is sent, and none of
 * their answers comes. Its connection is its own, so that nobody answers for its claims.
 */
export async function dieAfter(b: Bench, agent: Agent, isPoint: (head: Head) => boolean): Promise<void> {
  const { wired } = await import("../servers/stores.ts");
  const own = await wired(b.world.config);
  const died = Promise.withResolvers<void>();
  let isDead = false;
  const mortal = <T extends object>(port: T): T =>
    new Proxy(port, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        // What it would answer for nobody hears.
        const still = name === "answerFor" ? () => () => {} : dead;
        return (...args: unknown[]) => (isDead ? still() : value.apply(target, args));
      },
    });
  const store = mortal({
    ...own.store,
    putHead: async (head: Head, seen?: string) => {
      const written = await own.store.putHead(head, seen);
      if (!isPoint(head)) return written;
      isDead = true;
      died.resolve();
      return dead();
    },
  });
  const { model } = b.deps;
  const deps = { ...own, store, bus: mortal(own.bus), ...(model && { model }) };
  const once = { name: AGENT, agent, mode: "once", stop: new AbortController().signal } as const;
  const serving = async () => {
    // On a busy machine its message may come after it has stopped waiting, or its lease be lost on the way.
    while (!isDead) await patiently(() => serve(deps, once));
  };
  serving().catch(died.reject);
  await died.promise;
  await own.nc.close();
}
