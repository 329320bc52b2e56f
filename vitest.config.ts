import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Those that wait for leases take longest: begun last, they would run on alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\/test\/(system|web)\/|\/deploy\.test/.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: ["agents/**/*.test.ts", "test/**/*.test.ts"],
    globalSetup: "test/support/global.ts",
    setupFiles: "test/support/setup.ts",
    // Files leave nothing behind in their worker, so Pawl is loaded once by each, not by each file.
    isolate: false,
    // Answers of servers are garbage a moment later: with room for more of them, fewer are looked at.
    execArgv: ["--max-semi-space-size=32"],
    reporters: ["default", "./test/support/not-run.ts"],
    // Most of them wait for servers and leases, so more files than cores make progress at once.
    maxWorkers: 7,
    // Of those that run beside each other in one file, because all they do is wait.
    maxConcurrency: 6,
    sequence: { sequencer: LongestFirst },
    // Patience for a machine that has other work to do: only what hangs takes as long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
