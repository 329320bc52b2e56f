import type { Command } from "commander";

export function addDemo(program: Command): void {
  program
    .command("demo")
    .description("the incident that Pawl exists for, on real servers: no key, no account, half a minute")
    .addHelpText("after", "\nEnds with 1 if any work was done twice or lost.\nExample:\n  npx pawl demo")
    .action(async () => {
      await import("../../demo/demo.ts");
    });
}
