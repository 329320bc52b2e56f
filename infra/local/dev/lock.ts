import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { messageOf, PawlError } from "../../../shared/errors/errors.ts";
import { holdPid } from "./pid.ts";

/** Longer than a guard takes to end its server. */
const LONGEST_END = 15_000;

/**
 * One dev a project: two on the same folders would ruin each other's stores. It is SQLite's lock on a file, because the
 * system gives that back however its holder ends, and it can't be taken by two at once.
 */
export function claimProject(state: string): Disposable {
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const holder = join(state, "pid");
  const taken = () => {
    const pid = read(holder);
    return new PawlError(
      "setting_invalid",
      `Another dev runs in this project${pid ? ` (process ${pid})` : ""}, on ${state}. Use that one, or end it first`,
    );
  };
  // Before Node 24 SQLite is not there, or Node warns of it.
  const [major = 0] = process.versions.node.split(".").map(Number);
  const sqlite = major >= 24 && process.getBuiltinModule("node:sqlite");
  if (!sqlite) {
    if (!holdPid(holder)) throw taken();
    return { [Symbol.dispose]: () => rmSync(holder, { force: true }) };
  }
  const lock = new sqlite.DatabaseSync(join(state, "lock"));
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (!/locked/.test(messageOf(error))) throw error;
    throw taken();
  }
  writeFileSync(holder, String(process.pid));
  return { [Symbol.dispose]: () => lock.close() };
}

/**
 * After dev was killed its guards end its servers, a moment later: a second nats-server on the same folder meanwhile would
 * ruin it. So the one of before is waited for.
 */
export async function untilEnded(folder: string, ms = LONGEST_END): Promise<void> {
  const pid = read(join(folder, "nats.pid"));
  for (const end = Date.now() + ms; pid && (await isOn(pid, folder)); ) {
    if (Date.now() > end)
      throw new PawlError(
        "setting_invalid",
        `A nats-server that an earlier dev left behind (process ${pid}) still runs on ${folder}. End it: kill ${pid}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Whether that process is a server on that folder: its number may be another's by now. */
async function isOn(pid: string, folder: string): Promise<boolean> {
  const asked = promisify(execFile)("ps", ["-o", "command=", "-p", pid]);
  return asked.then(
    ({ stdout }) => stdout.includes(folder),
    () => false,
  );
}

function read(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^\d+$/.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
