import { type FSWatcher, watch } from "node:fs";
import { messageOf } from "../../../../shared/errors/errors.ts";
import { foldersOf, type Watched } from "./look.ts";

/** Things are quiet again: an editor writes a file in several goes. */
const QUIET = 100;
/** Where the system can't tell of changes. */
const POLL = 1_000;

export interface Watching extends Disposable {
  /** Watches these from now on. */
  watch(watched: Watched): void;
}

/**
 * Calls back when something may have changed, once things are quiet. Folders are watched and not files: an editor that
 * saves by a rename puts another file in the place of the one that was watched. What has changed, whoever is called
 * finds out by looking, so that one event more or less makes no difference.
 */
export function watching(changed: () => void, tell: (line: string) => void): Watching {
  const watchers = new Map<string, FSWatcher>();
  let quiet: NodeJS.Timeout | undefined;
  let poll: NodeJS.Timeout | undefined;
  const stir = () => {
    clearTimeout(quiet);
    quiet = setTimeout(changed, QUIET);
  };
  const drop = (folder: string) => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };
  const add = (folder: string) => {
    try {
      const watcher = watch(folder, stir);
      watchers.set(folder, watcher);
      // Its folder is gone, say: looked for again with the next set.
      watcher.on("error", () => {
        drop(folder);
        stir();
      });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT" || poll) return;
      tell(`! Files are looked at every second, because they can't be watched: ${messageOf(error)}`);
      poll = setInterval(changed, POLL);
    }
  };
  return {
    watch: (watched) => {
      const wanted = foldersOf(watched);
      for (const folder of watchers.keys()) if (!wanted.has(folder)) drop(folder);
      for (const folder of wanted) if (!watchers.has(folder)) add(folder);
    },
    [Symbol.dispose]: () => {
      clearTimeout(quiet);
      clearInterval(poll);
      for (const folder of [...watchers.keys()]) drop(folder);
    },
  };
}

/** One at a time; what is asked for meanwhile is done once more, when it is over. */
export function coalesced(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isAsked = false;
  const run = async () => {
    do {
      isAsked = false;
      await work();
    } while (isAsked);
  };
  return () => {
    isAsked = true;
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}
