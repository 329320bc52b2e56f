import { execFile } from "node:child_process";
import { readdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import { cacheFolder } from "./find-nats.ts";
import { type ChoosePort, freePort, onFreePorts } from "./ports.ts";
import { type ServerProcess, startServer, untilReady } from "./process.ts";

const run = promisify(execFile);
const MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore";

/** How to get one, as the last lines of `npm test` and the demo say it. */
export const HOW_TO_GET =
  "gcloud components install cloud-firestore-emulator (or Debian's google-cloud-cli-firestore-emulator, or npx firebase-tools setup:emulators:firestore), and a Java 11 or newer";

export interface Emulator extends AsyncDisposable {
  /** host:port, as FIRESTORE_EMULATOR_HOST has it. */
  readonly host: string;
  /** Undefined for one that was running before us. */
  readonly pid: number | undefined;
  /** With its exit code, when it ends; never for one that was running before us. */
  readonly exited: Promise<number | null>;
  stop(): Promise<void>;
}

/** Whether an emulator, of whomever, answers. */
export function isAnswering(host: string): Promise<boolean> {
  return fetch(`http://${host}/`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** The official Firestore emulator: the one that FIRESTORE_EMULATOR_HOST names, else one of our own; undefined if there is none. */
export async function startEmulator(
  env: Env = process.env,
  choosePort: ChoosePort = freePort,
): Promise<Emulator | undefined> {
  const running = readVariable(env, "FIRESTORE_EMULATOR_HOST");
  if (running) {
    const stop = async () => {};
    const exited = new Promise<never>(() => {});
    return { host: running, pid: undefined, exited, stop, [Symbol.asyncDispose]: stop };
  }
  const jar = await findJar(env);
  if (!jar || !(await hasJava())) return undefined;
  const { server, host } = await onFreePorts(() => emulatorOf(jar, choosePort));
  await warm(host);
  const { pid, exited, stop } = server;
  return { host, pid, exited, stop, [Symbol.asyncDispose]: stop };
}

async function emulatorOf(
  jar: string,
  choosePort: ChoosePort,
): Promise<{ server: ServerProcess; host: string }> {
  const [port, wsPort] = [await choosePort(), await choosePort()];
  const tuned = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
  const where = ["--host", "127.0.0.1", "--port", String(port), "--websocket_port", String(wsPort)];
  const server = await startServer("java", [...tuned, "-cp", jar, MAIN, ...where]);
  const host = `127.0.0.1:${port}`;
  // By its own word first: who answers on its port may be somebody else.
  const answers = async () =>
    server.output().includes("is now running") && (await fetch(`http://${host}/`)).ok;
  await untilReady(server, "The Firestore emulator", answers, 60_000);
  return { server, host };
}

/** Of gcloud's component, or of firebase-tools' cache. */
export async function findJar(env: Env): Promise<string | undefined> {
  const folders = [
    await componentsFolder(env),
    join(cacheFolder(env), "../firebase/emulators"),
    join(homedir(), ".cache/firebase/emulators"),
  ];
  for (const folder of folders) {
    const names = await readdir(folder).catch(() => []);
    const jars = names.filter((name) => /^cloud-firestore-emulator.*\.jar$/.test(name));
    const jar = jars.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).at(-1);
    if (jar) return join(folder, jar);
  }
  return undefined;
}

/** Where the gcloud of this PATH keeps it: two folders above its program. To ask gcloud itself takes it a second. */
async function componentsFolder({ PATH = "" }: Env): Promise<string> {
  for (const folder of PATH.split(delimiter)) {
    const program = await realpath(join(folder, "gcloud")).catch(() => undefined);
    if (program) return join(dirname(program), "../platform/cloud-firestore-emulator");
  }
  return "";
}

async function hasJava(): Promise<boolean> {
  return run("java", ["-version"]).then(
    () => true,
    () => false,
  );
}

/** The first write takes a second; let it be this one. */
async function warm(host: string): Promise<void> {
  const root = "projects/pawl-warm/databases/(default)/documents";
  const write = { update: { name: `${root}/warm/up`, fields: {} } };
  const headers = { authorization: "Bearer owner", "content-type": "application/json" };
  const response = await fetch(`http://${host}/v1/${root}:commit`, {
    method: "POST",
    headers,
    body: JSON.stringify({ writes: [write] }),
  });
  await response.arrayBuffer();
}
