import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Those of 20 s and more, nearly all of it waiting: for leases, for builds, for people who are played. */
const LONG = [
  /\/test\/(system|web|package|soak)\//,
  /\/cli\/(deploy|dev|dev-restart|cli|creds|operate)\.test/,
  /\/functions\/(platform|connections|live-platforms|api\/inputs)\.test/,
  /\/reconcile\/(clean|killed|faults\/\w+|faults\/queue-faults|figures\/figures)\.test/,
  /\/runner\/(boundary|succession|unbegun)\.test|\/dispatch\/(dead-letters|duplicates)\.test/,
  /\/handler\/paid\.test|\/deploy\/all\.test|\/sim\/search\.test|\/drills\/drill\.test/,
];

/** Begun last, they would run on alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((pattern) => pattern.test(moduleId));
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
    // Most of them wait for servers and leases, so more files than cores make progress at once; with more than these, cores
    // are kept busy by going from one to the other.
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
