import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const GUARD = fileURLToPath(new URL("guard.sh", import.meta.url));

export interface ServerProcess {
  /** The server's own, not its guard's: signals sent to it are real. */
  readonly pid: number;
  /** The last lines it printed, for error messages. */
  output(): string;
  /** Resolves with the first line that matches; rejects when it ends without one. */
  says(pattern: RegExp): Promise<string>;
  readonly exited: Promise<number | null>;
  stop(): Promise<void>;
}

/** Of all servers that were started and have not ended. */
const stops = new Set<() => Promise<void>>();

/** For a program that is told to stop while it starts some: what they still write would come after what it tidies up. */
export async function stopServers(): Promise<void> {
  await Promise.all([...stops].map((stop) => stop()));
}

/**
 * Starts a server that outlives neither this process nor a Ctrl-C: it is in a process group of its own, so the terminal
 * signals only us, and its guard stops it when we end in any way, SIGKILL included.
 */
export async function startServer(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  hear?: (line: string) => void,
): Promise<ServerProcess> {
  const child: ChildProcess = spawn("/bin/sh", [GUARD, command, ...args], {
    stdio: ["pipe", "pipe", "pipe", "ignore", "pipe"],
    detached: true,
    env,
  });
  let output = "";
  const listeners = new Set<() => void>();
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-16_000);
    for (const listener of listeners) listener();
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", keep);
    if (stream && hear) createInterface(stream).on("line", hear);
  }
  child.stdin?.on("error", () => {});
  const exited = new Promise<number | null>((resolve) => child.on("exit", (code) => resolve(code)));
  const stop = async () => {
    child.ref();
    child.stdin?.end();
    await exited;
  };
  stops.add(stop);
  void exited.then(() => stops.delete(stop));
  const pid = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.stdio[4]?.once("data", (chunk: Buffer) => resolve(Number(chunk.toString())));
  });
  // Without these a finished program would wait for its servers instead of ending and taking them along.
  child.unref();
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
  return {
    pid,
    output: () => output,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const line = output.split("\n").find((one) => pattern.test(one));
          if (line !== undefined) resolve(line);
        };
        listeners.add(look);
        look();
        void exited.then(() => reject(new Error(`It ended without saying ${pattern}:\n${output}`)));
      }),
    exited,
    stop,
  };
}

/** Asks until it is true; a server that died meanwhile is an error with what it printed. */
export async function untilReady(
  server: ServerProcess,
  what: string,
  ready: () => Promise<boolean>,
  ms: number,
) {
  const until = Date.now() + ms;
  let dead: number | null | undefined;
  void server.exited.then((code) => {
    dead = code;
  });
  for (;;) {
    const isReady = await ready().catch(() => false);
    // Who answers after it died is somebody else, who has its port.
    if (dead !== undefined)
      throw new Error(`${what} ended with ${dead} instead of starting:\n${server.output()}`);
    if (isReady) return;
    if (Date.now() > until) {
      await server.stop();
      throw new Error(`${what} was not ready after ${ms} ms:\n${server.output()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
