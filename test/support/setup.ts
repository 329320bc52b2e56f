import { afterAll, afterEach, vi } from "vitest";
import { killRunners } from "./servers/runners.ts";

// Files that share a worker share its modules: what must happen for each of them is here, which is run for each.
afterEach(async ({ task }) => {
  // Beside other tests, nobody knows whose they are.
  if (!task.concurrent) await killRunners();
});
afterAll(async () => {
  await killRunners();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
