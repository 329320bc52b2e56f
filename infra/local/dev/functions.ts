import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../../shared/errors/errors.ts";
import type { Tell } from "../find-nats.ts";
import { type ChoosePort, freePort } from "../ports.ts";
import { compatibilityOf, type LocalWorkerd, startWorkerd } from "../workerd.ts";
import { deaths } from "./deaths.ts";

type Vars = Readonly<Record<string, string>>;

export interface FunctionsOptions {
  /** For copies of bundles: what runs is not what the next build writes. */
  readonly folder: string;
  /** The project's wrangler.toml. */
  readonly wrangler?: string;
  readonly tell: Tell;
  /** Every line that a function prints. */
  readonly hear: (line: string) => void;
  /** Called once a function has started, for whatever reason. */
  readonly started: (name: string) => void;
  /** Called when one died too often. */
  readonly fail: (why: string) => void;
}

/** Every function in a workerd of its own: a change of one leaves the others alone, and each has variables of its own. */
export interface Functions extends AsyncDisposable {
  readonly urls: Readonly<Record<string, string>>;
  has(name: string): boolean;
  /** Starts it, or replaces it where its bundle or its variables are others. True if it did. */
  put(name: string, bundle: string, vars: Vars): Promise<boolean>;
  remove(name: string): Promise<void>;
  /** Fires its cron, as soon as it runs; over when the invocation is. */
  cron(name: string): Promise<void>;
}

interface Version {
  readonly file: string;
  readonly vars: Vars;
  readonly key: string;
}

interface Kept {
  /** The same from version to version. */
  readonly choosePort: ChoosePort;
  readonly often: () => boolean;
  version: Version;
  /** One that did not start, by its key: not tried again. */
  refused?: string;
  workerd?: LocalWorkerd;
  /** What is being done to it. */
  doing: Promise<unknown>;
}

export async function functionsIn(options: FunctionsOptions): Promise<Functions> {
  const { folder, tell, hear, started, fail, wrangler } = options;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const all = new Map<string, Kept>();

  const start = async (name: string, kept: Kept, { file, vars }: Version): Promise<void> => {
    const choosing = { choosePort: kept.choosePort, ...(wrangler && { wrangler }) };
    const workerd = await startWorkerd([{ name, file }], { vars, hear, ...choosing });
    kept.workerd = workerd;
    void workerd.exited.then((code) => {
      if (kept.workerd === workerd) void inTurn(kept, () => revive(name, kept, workerd, code));
    });
    started(name);
  };
  const stop = async (kept: Kept): Promise<void> => {
    const { workerd } = kept;
    delete kept.workerd;
    await workerd?.[Symbol.asyncDispose]();
  };
  const revive = async (name: string, kept: Kept, dead: LocalWorkerd, code: number | null): Promise<void> => {
    if (kept.workerd !== dead || all.get(name) !== kept) return;
    await stop(kept);
    if (kept.often()) return fail(`The function ${name} died too often, the last time with ${code}`);
    tell(`! The function ${name} died (${code}). It is started again`);
    await start(name, kept, kept.version).catch((error: unknown) =>
      fail(`The function ${name} died, and can't be started again: ${messageOf(error)}`),
    );
  };
  /** To a version that may not start: then the one of before goes on. */
  const replace = async (name: string, kept: Kept, next: Version): Promise<void> => {
    const last = kept.version;
    await stop(kept);
    try {
      await start(name, kept, next);
    } catch (error) {
      // Not one that was only too slow: it may start the next time.
      if (/instead of starting/.test(messageOf(error))) kept.refused = next.key;
      if (last.file !== next.file) await rm(next.file, { force: true });
      await start(name, kept, last);
      throw error;
    }
    kept.version = next;
    if (last.file !== next.file) await rm(last.file, { force: true });
  };
  const put: Functions["put"] = async (name, bundle, vars) => {
    const digest = createHash("sha256")
      .update(await readFile(bundle))
      .digest("hex")
      .slice(0, 16);
    const key = JSON.stringify([digest, vars, compatibilityOf(wrangler)]);
    const next = { file: join(folder, `${name}-${digest}.js`), vars, key };
    const there = all.get(name);
    if (there) {
      return inTurn(there, async () => {
        const isIt = there.version.key === next.key && there.workerd !== undefined;
        if (isIt || there.refused === next.key) return false;
        await copyFile(bundle, next.file);
        await replace(name, there, next);
        return true;
      });
    }
    await copyFile(bundle, next.file);
    const kept: Kept = {
      choosePort: await samePorts(),
      often: deaths(),
      version: next,
      doing: Promise.resolve(),
    };
    all.set(name, kept);
    await inTurn(kept, () => start(name, kept, next)).catch((error: unknown) => {
      all.delete(name);
      throw error;
    });
    return true;
  };
  const remove: Functions["remove"] = async (name) => {
    const kept = all.get(name);
    all.delete(name);
    if (kept) await inTurn(kept, () => stop(kept));
  };
  return {
    get urls() {
      return Object.fromEntries(
        [...all].flatMap(([name, { workerd }]) => (workerd ? [[name, workerd.urls[name] as string]] : [])),
      );
    },
    has: (name) => all.has(name),
    put,
    remove,
    cron: async (name) => {
      const kept = all.get(name);
      await kept?.doing.catch(() => {});
      const workerd = kept?.workerd;
      if (!workerd) return;
      await workerd.cron(name).catch((error: unknown) => {
        // One that was replaced meanwhile is woken anew when it has started.
        if (kept.workerd === workerd) tell(`cron of ${name}: ${messageOf(error)}`);
      });
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...all.keys()].map(remove));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** One after the other. */
function inTurn<T>(kept: Kept, work: () => Promise<T>): Promise<T> {
  const done = kept.doing.catch(() => {}).then(work);
  kept.doing = done.catch(() => {});
  return done;
}

/** Its own and its front's, in turn: whoever knows a function's address knows it for as long as dev runs. */
async function samePorts(): Promise<ChoosePort> {
  const ports = [await freePort(), await freePort()] as const;
  let asked = 0;
  return async () => ports[asked++ % 2] as number;
}
