import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { isScope, scopeNames, scopes } from "../../../shared/web/scopes.ts";
import { createToken, revokeToken } from "../../../shared/web/tokens.ts";
import { logger, say, sayJson } from "../output.ts";

export function addToken(program: Command, config: () => Config): void {
  const tokens = program.command("token").description("tokens of the HTTP API");

  tokens
    .command("revoke")
    .description("revoke a token: it is refused from now on")
    .argument("<token>", "the token, or - to read it from standard input")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl token revoke - < token.txt")
    .action(async (given: string, { json = false }: { json?: boolean }) => {
      const text = given === "-" ? readFileSync(0, "utf8").trim() : given;
      await using deps = await wire(config(), logger(json));
      if (!(await revokeToken(deps.store, text)))
        throw new PawlError("input_invalid", "That is not a valid token of this namespace");
      if (json) sayJson({ revoked: true });
      else say("revoked");
    });

  tokens
    .command("create")
    .description("make a token; it is shown once, and only its hash is kept")
    .requiredOption("--owner <name>", "whose it is: tasks submitted with it are theirs")
    .option("--scope <scopes>", `some of ${scopeNames.join(",")}`, "submit,read")
    .option("--agents <names>", "limit it to these agents, separated by commas")
    .option("--json", "answer in JSON")
    .addHelpText("after", () => {
      const lines = scopeNames.map(
        (name) => `  ${name.padEnd(8)} ${scopes[name].allows.replaceAll("`", "")}`,
      );
      const example = "  pawl token create --owner web-shop --scope submit,read --agents echo";
      return `\nScopes:\n${lines.join("\n")}\n\nExample:\n${example}`;
    })
    .action(
      async (
        options: { owner: string; scope: string; agents?: string; json?: boolean },
        command: Command,
      ) => {
        const given = options.scope.split(",").map((one) => one.trim());
        const wrong = given.find((one) => !isScope(one));
        if (wrong !== undefined)
          command.error(`There is no scope ${JSON.stringify(wrong)}, only ${scopeNames.join(", ")}`);
        const agents = options.agents?.split(",").map((one) => one.trim());
        await using deps = await wire(config(), logger(options.json ?? false));
        const token = await createToken(deps.store, {
          owner: options.owner,
          scopes: given.filter(isScope),
          ...(agents && { agents }),
          createdAt: Date.now(),
        });
        if (options.json) sayJson({ token, owner: options.owner, scopes: given, ...(agents && { agents }) });
        else say(token);
      },
    );
}
