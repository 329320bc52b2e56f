import { createWriteStream, type WriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freeze } from "../../../infra/drills/faults/freeze.ts";
import { type ServerProcess, startServer } from "../../../infra/local/process.ts";
import { AGENT } from "../work.ts";
import type { Inject } from "./disturb.ts";

const CLI = fileURLToPath(new URL("../../../infra/cli/main.ts", import.meta.url));

/** Runners in processes of their own: whoever ends, killed or by itself, is replaced. */
export interface Crew extends AsyncDisposable {
  readonly inject: Inject;
  /** How many ended by themselves, because a server was away when they started. */
  endedThemselves(): number;
}

interface Place {
  process: ServerProcess;
  /** A process that is frozen is not to be frozen again, nor killed by another fault. */
  isHit: boolean;
}

export async function startCrew(
  size: number,
  envOf: (place: number) => Record<string, string>,
  folder: string,
  /** The process that began something last, of these. */
  lastAtWork: (pids: readonly number[]) => number | undefined,
): Promise<Crew> {
  const logs: WriteStream[] = [];
  let isOver = false;
  let ended = 0;
  const start = async (place: number): Promise<ServerProcess> => {
    const log = createWriteStream(join(folder, `runner-${logs.length}.log`));
    logs.push(log);
    const env = { PATH: process.env.PATH, ...envOf(place) };
    const started = await startServer(process.execPath, [CLI, "run", AGENT, "--json"], env, (line) => {
      log.write(`${line}\n`);
    });
    log.write(`${JSON.stringify({ at: new Date().toISOString(), pid: started.pid, place })}\n`);
    return started;
  };
  const places: Place[] = await Promise.all(
    Array.from({ length: size }, async (_, i) => ({ process: await start(i), isHit: false })),
  );
  const keepUp = async (place: Place, i: number) => {
    for (;;) {
      const status = await place.process.exited;
      if (isOver) return;
      // 137: it was killed.
      if (status !== 137) {
        ended++;
        await sleep(500);
      }
      place.process = await start(i);
      if (isOver) await place.process.stop();
    }
  };
  const kept = places.map(keepUp);

  const victim = (pick: number): Place | undefined => {
    const free = places.filter(({ isHit }) => !isHit);
    // Half of them in the middle of something, or a moment after it.
    const atWork = pick < 0.5 ? lastAtWork(free.map(({ process: { pid } }) => pid)) : undefined;
    return free.find(({ process: { pid } }) => pid === atWork) ?? free[Math.floor(pick * free.length)];
  };
  return {
    endedThemselves: () => ended,
    inject: async ({ kind, lasts, pick }, begun) => {
      const hit = victim(pick);
      if (!hit) return;
      const { pid, exited } = hit.process;
      try {
        if (kind === "runner killed") {
          begun({ pid });
          process.kill(pid, "SIGKILL");
          await exited;
          return;
        }
        hit.isHit = true;
        await freeze(pid);
        begun({ pid });
        await sleep(lasts);
        process.kill(pid, "SIGCONT");
      } catch {
        // It ended by itself a moment before.
      } finally {
        hit.isHit = false;
      }
    },
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await Promise.all(places.map(({ process: one }) => one.stop()));
      await Promise.all(kept);
      await Promise.all(logs.map((log) => new Promise<void>((resolve) => log.end(() => resolve()))));
    },
  };
}
