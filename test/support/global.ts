import { mkdtemp, rm, statfs } from "node:fs/promises";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startEmulator } from "../../infra/local/emulator.ts";
import { findNatsServer } from "../../infra/local/find-nats.ts";
import { buildPrograms, type Programs } from "./servers/programs.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** host:port of the Firestore emulator; empty when there is none. */
    emulatorHost: string;
    natsServer: string;
    programs: Programs;
  }
}

const MEMORY = "/dev/shm";
const ROOM = 4 * 1024 ** 3;

/** In memory where there is plenty of it: a nats-server waits for the disk with every stream that it makes. */
async function roomyFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  return Math.min(bavail * bsize, freemem()) > ROOM ? MEMORY : tmpdir();
}

/** One emulator for all files (each has projects of its own); a nats-server is cheap, each file starts its own. */
export default async function setup(project: TestProject) {
  // Those who are killed can't tidy up: all temporary folders of a run are in one, which goes with it.
  const folder = await mkdtemp(join(await roomyFolder(), "pawl-tests-"));
  process.env.TMPDIR = folder;
  // A command takes a third of the time if another one has compiled its code before.
  process.env.NODE_COMPILE_CACHE = join(folder, "compiled");
  // esbuild and nats-server are written in Go, and live for a moment: there is room for what they don't tidy up.
  process.env.GOGC ??= "400";
  // Each serves one file: with a processor of its own it looks for work less often.
  process.env.GOMAXPROCS ??= "1";
  const [natsServer, emulator, { [Symbol.dispose]: tidy, ...programs }] = await Promise.all([
    findNatsServer(process.env, console.log),
    startEmulator(),
    buildPrograms(),
  ]);
  if (!emulator) process.env.TEST_NO_EMULATOR = "1";
  project.provide("natsServer", natsServer);
  project.provide("emulatorHost", emulator?.host ?? "");
  project.provide("programs", programs);
  return async () => {
    await emulator?.stop();
    tidy();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
}
