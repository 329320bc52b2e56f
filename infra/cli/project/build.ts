import { existsSync } from "node:fs";
import { relative } from "node:path";
import { type Command, Option } from "commander";
import { messageOf } from "../../../shared/errors/errors.ts";
import { settingsFrom } from "../../../shared/settings/settings.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { agentsFolder } from "../../agents.ts";
import { kib, TARGETS, type Target } from "../../build/targets.ts";
import { uncarriedLine } from "../../build/uncarried.ts";
import { warnedOf } from "../../doctor/examine.ts";
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
      const warnings = await settingsOf(options.target);
      const file = relative(process.cwd(), built.file);
      if (options.json) sayJson({ ...built, file, warnings });
      else {
        const limit = built.limit ? ` of ${built.limit}` : "";
        say(`${file}  ${kib(built.bytes)} KiB, ${kib(built.gzip)}${limit} KiB gzipped`);
        for (const one of [...built.uncarried.map(uncarriedLine), ...warnings]) say(`! ${one}`);
      }
    });
}

/** What the doctor says of the settings that the function will have, where they are in this folder. Throws for an error. */
async function settingsOf(target: Target): Promise<readonly string[]> {
  const file = target === "cloudflare" ? "wrangler.toml" : "gcp.env";
  if (!existsSync(file)) return [];
  let settings: Env;
  try {
    settings =
      target === "cloudflare"
        ? (await import("../../deploy/cloudflare.ts")).cloudflare().settings
        : (await import("../../deploy/gcp.ts")).gcp().settings;
  } catch (error) {
    // A build needs none of them: a deploy says so.
    return [`the settings of ${file} were not looked at: ${messageOf(error)}`];
  }
  return warnedOf({ settings: settingsFrom(settings) });
}
