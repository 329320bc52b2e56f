import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { missingPackage } from "../missing.ts";
import { readWrangler } from "../wrangler.ts";
import type { CommandResult } from "./commands.ts";
import type { Looked, Platform } from "./platform.ts";

const FILE = "wrangler.toml";

/** Cloudflare Workers, by wrangler, with the settings of wrangler.toml in this folder. */
export function cloudflare(env?: string): Platform {
  const path = resolve(FILE);
  if (!existsSync(path))
    throw new PawlError("setting_invalid", `There is no ${path}. Run this in the project's folder`);
  const config = readConfig(path, env);
  const settings = Object.fromEntries(
    Object.entries(config.vars).map(([name, value]) => [name, String(value)] as const),
  );
  const service = (name: string) => [config.topLevelName ?? "pawl", name, env].filter(Boolean).join("-");
  let asked: Promise<CommandResult> | undefined;
  return {
    target: "cloudflare",
    settings,
    source: FILE,
    kept: [],
    service,
    away: async (commands) => {
      // Once for all functions of a deploy.
      asked ??= commands.ask(["wrangler", "whoami"]);
      const who = await asked;
      return who.code !== 0 || /not authenticated/i.test(who.stdout + who.stderr)
        ? "Nobody is logged in to Cloudflare. Run: npx wrangler login (or set CLOUDFLARE_API_TOKEN)"
        : undefined;
    },
    look: async (name, commands) => {
      const status = await commands.ask([
        ...["wrangler", "deployments", "status", "--name", service(name), "--json"],
      ]);
      if (isAbsent(status)) return { is: "none" };
      const current = currentVersion(status.stdout);
      if (status.code !== 0 || !current) return { is: "unknown", why: said(status) };
      const version = ["wrangler", "versions", "view", current.revision, "--name", service(name), "--json"];
      const viewed = await commands.ask(version);
      const bindings = bindingsIn(viewed.stdout);
      return bindings ? { is: "there", ...current, ...bindings } : { is: "unknown", why: said(viewed) };
    },
    secretsThere: async (name, _needed, commands) => {
      const list = await commands.ask([
        ...["wrangler", "secret", "list", "--name", service(name), "--format", "json"],
      ]);
      // A Worker that is not there yet has none; setting one creates it.
      if (isAbsent(list)) return new Set();
      if (list.code === 0) return namesIn(list.stdout);
      return {
        problem: `The secrets of ${service(name)} can't be listed. With several accounts set CLOUDFLARE_ACCOUNT_ID. wrangler said:\n${said(list)}`,
      };
    },
    missing: async () => [],
    secretName: (name, secret) => `${secret} of ${service(name)}`,
    toSet: (name, secret) => `Run: npx wrangler secret put ${secret} --name ${service(name)}`,
    toDrop: (name, secret) =>
      `nothing of ${service(name)} reads it. Run: npx wrangler secret delete ${secret} --name ${service(name)}`,
    toGoBack: (name, revision) => [`npx wrangler rollback ${revision} --name ${service(name)}`],
    deploy: async ({ function: name, built, cron, manifest, commands }) => {
      const argv = [
        ...["wrangler", "deploy", relative(process.cwd(), built.file), "--no-bundle", "--config", FILE],
        // Told a name, wrangler adds no environment's name to it.
        ...["--name", service(name), ...(env ? ["--env", env] : []), "--upload-source-maps"],
        ...["--var", `PAWL_DEPLOYED:${manifest}`],
        ...(cron ? ["--triggers", cron] : []),
      ];
      const { stdout } = await commands.make(argv, [...argv, "--dry-run"]);
      const address = commands.isDry ? undefined : /https:\/\/\S+/.exec(stdout)?.[0];
      return address ?? service(name);
    },
  };
}

function readConfig(path: string, env: string | undefined) {
  try {
    return readWrangler(path, env);
  } catch (error) {
    const missing = missingPackage(error);
    if (missing) throw missing;
    const reason = messageOf(error);
    const isNoEnv = env && reason.includes("No environment found");
    const add = `${FILE} has no [env.${env}]. Add it, with [env.${env}.vars]`;
    throw new PawlError("setting_invalid", isNoEnv ? add : reason, { cause: error });
  }
}

function isAbsent({ code, stdout, stderr }: CommandResult): boolean {
  return code !== 0 && /not found|does not exist|no deployments|10007/i.test(stdout + stderr);
}

const said = ({ stdout, stderr }: CommandResult) =>
  (stderr + stdout).trim().split("\n").slice(0, 6).join("\n") || "wrangler said nothing";

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** The version that most requests go to. */
function currentVersion(json: string): { revision: string; at?: string } | undefined {
  const status = parsed(json) as
    | { created_on?: string; versions?: { version_id: string; percentage: number }[] }
    | undefined;
  const [first] = [...(status?.versions ?? [])].sort((a, b) => b.percentage - a.percentage);
  return first && { revision: first.version_id, ...(status?.created_on && { at: status.created_on }) };
}

function bindingsIn(
  json: string,
): Pick<Extract<Looked, { is: "there" }>, "settings" | "secrets"> | undefined {
  const version = parsed(json) as
    | { resources?: { bindings?: { type: string; name: string; text?: string }[] } }
    | undefined;
  const bindings = version?.resources?.bindings;
  if (!bindings) return undefined;
  const of = (type: string) => bindings.filter((one) => one.type === type);
  return {
    settings: Object.fromEntries(of("plain_text").map(({ name, text = "" }) => [name, text])),
    secrets: of("secret_text").map(({ name }) => name),
  };
}

function namesIn(json: string): Set<string> {
  const list = parsed(json);
  return new Set(Array.isArray(list) ? (list as { name: string }[]).map(({ name }) => name) : []);
}
