import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { audited } from "../../../shared/audit/audited.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { parseDuration } from "../../../shared/values/duration.ts";
import { sha256 } from "../../../shared/values/json.ts";
import { isScope, scopeNames, scopes } from "../../../shared/web/scopes.ts";
import { isTokenId, lastUse, listedHashes, tokenIdOf } from "../../../shared/web/token-list.ts";
import {
  createToken,
  findByHash,
  isExpired,
  isTokenLike,
  type KnownToken,
  moveFormerTokens,
  newTokenText,
  revokeToken,
  tokenHash,
} from "../../../shared/web/tokens.ts";
import { agentsFolder, checkAgents } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { columns } from "../columns.ts";
import { logger, say, sayJson } from "../output.ts";

/** Asked for at once when tokens are listed. */
const AT_ONCE = 16;

export function addToken(program: Command, config: () => Config): void {
  const tokens = program.command("token").description("tokens of the HTTP API");
  addRevoke(tokens, config);
  addList(tokens, config);
  addCreate(tokens, config);
  addMove(tokens, config);
}

function addRevoke(tokens: Command, config: () => Config): void {
  tokens
    .command("revoke")
    .description("revoke a token: it is refused from now on, and its open event streams end within 10 s")
    .argument(
      "<token>",
      "its id, such as tok_0123456789abcdef; the token itself; or - to read either from standard input",
    )
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  pawl token revoke tok_0123456789abcdef\n  pawl token revoke - < token.txt",
    )
    .action(async (given: string, { json = false }: { json?: boolean }) => {
      const text = given === "-" ? readFileSync(0, "utf8").trim() : given;
      // Nothing of it is shown: it may be a token that was not copied whole.
      if (!isTokenId(text) && !isTokenLike(text))
        throw new PawlError("input_invalid", "That is no token, and no id of one: see pawl token list");
      await using wired = await wire(config(), logger(json));
      const deps = { ...wired, actor: commandActor() };
      const hash = await tokenHash(deps.store, text);
      const id = hash === undefined ? text : tokenIdOf(hash);
      const revoked = await audited(
        deps,
        { op: "token revoke", token: id },
        async () => {
          const token = await revokeToken(deps.store, text);
          if (token) return token;
          throw new PawlError(
            "input_invalid",
            `There is no valid token ${id} in this namespace: see pawl token list`,
          );
        },
        ({ owner }) => ({ detail: `owner ${owner}` }),
      );
      if (json) sayJson({ revoked: true, id, owner: revoked.owner });
      else say(`revoked ${id} of ${revoked.owner}`);
    });
}

function addMove(tokens: Command, config: () => Config): void {
  tokens
    .command("move")
    .description("take over tokens of earlier versions, which are refused until then; says which these are")
    .option("--json", "one JSON object a line; times are milliseconds")
    .addHelpText("after", "\nRevoke those that you don't know.\nExample:\n  pawl token move")
    .action(async ({ json = false }: { json?: boolean }) => {
      await using wired = await wire(config(), logger(json));
      const deps = { ...wired, actor: commandActor() };
      const moved = await moveFormerTokens(deps.store);
      for (const { id, owner } of moved)
        await audited(
          deps,
          { op: "token create", token: id, detail: `owner ${owner}, of an earlier version` },
          async () => {},
        );
      if (json) for (const token of moved) sayJson(shown(token));
      else for (const line of lines(moved)) say(line);
    });
}

function addList(tokens: Command, config: () => Config): void {
  tokens
    .command("list")
    .description(
      "list tokens: whose they are, what they may do, when they expire and were used last (to 5 minutes)",
    )
    .option("--owner <name>", "of this owner")
    .option("--json", "one JSON object a line; times are milliseconds")
    .addHelpText(
      "after",
      "\nTokens of earlier versions are listed once they are moved: pawl token move.\nExample:\n  pawl token list --owner web-shop",
    )
    .action(async ({ owner, json = false }: { owner?: string; json?: boolean }) => {
      await using deps = await wire(config(), logger(json));
      const hashes = await listedHashes(deps.store);
      const found: (KnownToken & { usedAt?: number })[] = [];
      for (let i = 0; i < hashes.length; i += AT_ONCE) {
        const some = hashes.slice(i, i + AT_ONCE).map(async (hash) => {
          const token = await findByHash(deps.store, hash);
          if (!token || (owner ?? token.owner) !== token.owner) return;
          const usedAt = await lastUse(deps.store, token.id);
          found.push({ ...token, ...(usedAt !== undefined && { usedAt }) });
        });
        await Promise.all(some);
      }
      found.sort((a, b) => a.owner.localeCompare(b.owner) || a.createdAt - b.createdAt);
      if (json) for (const token of found) sayJson(shown(token));
      else for (const line of lines(found)) say(line);
    });
}

/** In one order, and nothing but what is meant to be shown. */
function shown({
  id,
  owner,
  scopes,
  agents,
  createdAt,
  expiresAt,
  usedAt,
}: KnownToken & { usedAt?: number }) {
  return {
    id,
    owner,
    scopes,
    agents,
    createdAt,
    expiresAt,
    usedAt,
    expired: isExpired({ ...(expiresAt !== undefined && { expiresAt }) }, Date.now()),
  };
}

function lines(tokens: readonly (KnownToken & { usedAt?: number })[]): readonly string[] {
  if (tokens.length === 0) return ["no tokens"];
  const time = (at: number | undefined, none: string) =>
    at === undefined ? none : new Date(at).toISOString().slice(0, 16);
  const rows = tokens.map((token) => [
    token.id,
    token.owner,
    token.scopes.join(","),
    token.agents?.join(",") ?? "all",
    time(token.createdAt, ""),
    isExpired(token, Date.now()) ? "expired" : time(token.expiresAt, "never"),
    time(token.usedAt, "not yet"),
  ]);
  return columns(["id", "owner", "scopes", "agents", "created", "expires", "last used"], rows);
}

interface CreateOptions {
  readonly owner: string;
  readonly scope: string;
  readonly agents?: string;
  readonly expires?: string;
  readonly json?: boolean;
}

function addCreate(tokens: Command, config: () => Config): void {
  tokens
    .command("create")
    .description("make a token; it is shown once, and only its hash is kept")
    .requiredOption("--owner <name>", "whose it is: tasks submitted with it are theirs")
    .option("--scope <scopes>", `some of ${scopeNames.join(",")}`, "submit,read")
    .option("--agents <names>", "limit it to these agents, separated by commas")
    .option("--expires <duration>", "refuse it after this time, such as 30d; never by default")
    .option("--json", "answer in JSON")
    .addHelpText("after", () => {
      const lines = scopeNames.map(
        (name) => `  ${name.padEnd(8)} ${scopes[name].allows.replaceAll("`", "")}`,
      );
      const example = "  pawl token create --owner web-shop --scope submit,read --agents echo --expires 90d";
      return `\nScopes:\n${lines.join("\n")}\n\nExample:\n${example}`;
    })
    .action(async (options: CreateOptions, command: Command) => {
      const given = options.scope.split(",").map((one) => one.trim());
      const wrong = given.find((one) => !isScope(one));
      if (wrong !== undefined)
        command.error(`There is no scope ${JSON.stringify(wrong)}, only ${scopeNames.join(", ")}`);
      const agents = options.agents?.split(",").map((one) => one.trim());
      if (agents) await checkAgents(agents, agentsFolder());
      const lasts = options.expires === undefined ? undefined : parseDuration(options.expires);
      if (options.expires !== undefined && !lasts)
        command.error(`--expires ${options.expires} is not a duration; write it like 30d`);
      const createdAt = Date.now();
      const token = {
        owner: options.owner,
        scopes: given.filter(isScope),
        ...(agents && { agents }),
        createdAt,
        ...(lasts !== undefined && { expiresAt: createdAt + lasts }),
      };
      await using wired = await wire(config(), logger(options.json ?? false));
      const deps = { ...wired, actor: commandActor() };
      const text = newTokenText();
      const id = tokenIdOf(sha256(text));
      const detail = `owner ${token.owner}, scopes ${given.join(",")}${agents ? `, agents ${agents.join(",")}` : ""}${options.expires ? `, for ${options.expires}` : ""}`;
      await audited(deps, { op: "token create", token: id, detail }, () =>
        createToken(deps.store, token, text),
      );
      if (options.json) sayJson({ token: text, id, ...token });
      else {
        say(text);
        if (process.stderr.isTTY) process.stderr.write(`its id, for pawl token list and revoke: ${id}\n`);
      }
    });
}
