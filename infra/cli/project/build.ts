import { relative } from "node:path";
import { type Command, Option } from "commander";
import { agentsFolder } from "../../agents.ts";
import { kib, TARGETS, type Target } from "../../build/targets.ts";
import { say, sayJson } from "../output.ts";

export function addBuild(program: Command): void {
  program
    .command("build")
    .description("bundle one function for one platform, into dist/")
    .argument("<function>", "an agent's name, or api, dispatch, reconcile")
    .addOption(new Option("--target <platform>", "where it will run").choices(TARGETS).default("cloudflare"))
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  npm run build -- echo --target gcp")
    .action(async (name: string, options: { target: Target; json?: boolean }) => {
      const { buildFunction } = await import("../../build/build.ts");
      const built = await buildFunction(name, options.target, agentsFolder());
      const file = relative(process.cwd(), built.file);
      if (options.json) sayJson({ ...built, file });
      else say(`${file}  ${kib(built.bytes)} KiB, ${kib(built.gzip)} KiB gzipped`);
    });
}
