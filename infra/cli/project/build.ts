import { relative } from "node:path";
import { type Command, Option } from "commander";
import { agentsFolder } from "../../agents.ts";
import { kib, TARGETS, type Target } from "../../build/targets.ts";
import { uncarriedLine } from "../../build/uncarried.ts";
import { say, sayJson } from "../output.ts";

export function addBuild(program: Command): void {
  program
    .command("build")
    .description("bundle one function for one platform, into dist/")
    .argument("<function>", "an agent's name, or api, dispatch, reconcile")
    .addOption(new Option("--target <platform>", "where it will run").choices(TARGETS).default("cloudflare"))
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      "\nAn agent's bundle for Workers may have 256 KiB gzipped, or pawl.bundleLimitKiB of package.json.\nExample:\n  npx pawl build echo --target gcp",
    )
    .action(async (name: string, options: { target: Target; json?: boolean }) => {
      const { buildFunction } = await import("../../build/build.ts");
      const built = await buildFunction(name, options.target, agentsFolder());
      const file = relative(process.cwd(), built.file);
      if (options.json) sayJson({ ...built, file });
      else {
        const limit = built.limit ? ` of ${built.limit}` : "";
        say(`${file}  ${kib(built.bytes)} KiB, ${kib(built.gzip)}${limit} KiB gzipped`);
        for (const one of built.uncarried) say(`! ${uncarriedLine(one)}`);
      }
    });
}
