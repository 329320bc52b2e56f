import { register } from "node:module";
import { ENDING } from "./project.ts";

let isReady = Boolean(process.features.typescript);

/** Authors' files are TypeScript: a Node that can't read it, which is one before 22.18, is taught to by esbuild. */
export async function readTypeScript(): Promise<void> {
  if (isReady) return;
  isReady = true;
  // Whoever has none is told so here, and not by an agent that can't be imported.
  await import("esbuild");
  process.setSourceMapsEnabled(true);
  register(new URL(`typescript-hooks${ENDING}`, import.meta.url));
}
