import type { Reporter, TestModule } from "vitest/node";
import { HOW_TO_GET } from "../../infra/local/emulator.ts";

/** The last lines of a test run: what this machine could not run, and how to get what it needs. */
export default class NotRun implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    if (skipped.length === 0 || !process.env.TEST_NO_EMULATOR) return;
    console.log(`\nNot run here, for want of the Firestore emulator: ${skipped.length} tests`);
    for (const test of skipped) console.log(`  ${test.module.relativeModuleId}: ${test.fullName}`);
    console.log(`Get it: ${HOW_TO_GET}`);
  }
}
