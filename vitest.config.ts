import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["agents/*.test.ts", "test/**/*.test.ts"],
    globalSetup: "test/support/global.ts",
    reporters: ["default", "./test/support/not-run.ts"],
    // Most of them wait for servers and leases, so more files than cores make progress at once.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
