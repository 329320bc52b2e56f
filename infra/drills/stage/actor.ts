import { fileURLToPath } from "node:url";
import { type ServerProcess, startServer } from "../../local/process.ts";
import { ENDING } from "../../project.ts";
import { freeze } from "../faults/freeze.ts";
import type { Boundary } from "../pause.ts";

const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));

/** A process of Pawl's that a drill does things to: a runner, or a submitter. */
export interface Actor {
  /** As the drill calls it: A, B. */
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<number | null>;
  /** Resolves with the line when it has said such a one; rejects when it ended, or took longer than anything may. */
  says(pattern: RegExp): Promise<string>;
  /** It stands still at this boundary. */
  stoppedAt(boundary: Boundary): Promise<void>;
  /** It goes on from where it stood still. */
  resume(): void;
  kill(): Promise<void>;
  freeze(): Promise<void>;
  wake(): void;
  /** As a deploy ends a process. */
  tellToStop(): void;
}

/** Longer than any process takes to come up, or to get to the place where it is wanted. */
const PATIENCE = 60_000;

export interface Started {
  readonly name: string;
  readonly script: "runner" | "submitter";
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export async function startActor({ name, script, args, env }: Started): Promise<Actor & AsyncDisposable> {
  const server = await startServer(process.execPath, [at(`../${script}${ENDING}`), ...args], env);
  return actorOf(name, server);
}

function actorOf(name: string, server: ServerProcess): Actor & AsyncDisposable {
  const { pid, exited } = server;
  let isOver = false;
  void exited.then(() => {
    isOver = true;
  });
  const send = (signal: NodeJS.Signals) => {
    if (isOver) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It has just ended, and its guard has yet to say so.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  const says = (pattern: RegExp) =>
    Promise.race([
      server.says(pattern).catch((error: Error) => {
        throw new Error(`${name} ${error.message.slice(0, 2_000)}`);
      }),
      new Promise<never>((_, reject) => {
        const late = () =>
          reject(
            new Error(
              `${name} did not say ${pattern} within ${PATIENCE} ms:\n${server.output().slice(-2_000)}`,
            ),
          );
        setTimeout(late, PATIENCE).unref();
      }),
    ]);
  const kill = async () => {
    send("SIGKILL");
    await exited;
  };
  return {
    name,
    pid,
    exited,
    says,
    stoppedAt: async (boundary) => {
      await says(new RegExp(`^AT ${boundary}$`));
    },
    resume: () => send("SIGUSR2"),
    kill,
    freeze: () => freeze(pid),
    wake: () => send("SIGCONT"),
    tellToStop: () => send("SIGTERM"),
    [Symbol.asyncDispose]: kill,
  };
}
