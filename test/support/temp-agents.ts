import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { ROOT } from "../../infra/build/targets.ts";

/** How agents in such a folder import Pawl. */
export const SHARED = "../../shared";

/** A folder for agents of a test file's own: inside the project, where packages are found, and out of its checks' way. */
export function tempAgents(): string {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "dist", "agents-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
