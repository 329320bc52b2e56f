import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { unstable_readConfig } from "wrangler";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import { type Platform, secretsOf } from "./deployment.ts";

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
  const { given } = readVariables(settings);
  const isGoogle = given.PAWL_STORE !== "nats-kv";
  const secrets = [
    "PAWL_RUN_SECRET",
    ...(isGoogle ? ["GOOGLE_APPLICATION_CREDENTIALS"] : []),
    ...(given.PAWL_WEBHOOK_URL ? ["PAWL_WEBHOOK_SECRET"] : []),
  ];
  return {
    settings,
    source: FILE,
    secrets,
    missing: async ({ function: name, commands }) => {
      const who = await commands.ask(["wrangler", "whoami"]);
      if (who.code !== 0 || /not authenticated/i.test(who.stdout + who.stderr))
        return ["Nobody is logged in to Cloudflare. Run: npx wrangler login (or set CLOUDFLARE_API_TOKEN)"];
      const list = await commands.ask([
        "wrangler",
        "secret",
        "list",
        "--name",
        service(name),
        "--format",
        "json",
      ]);
      // A Worker that is not there yet has none; setting one creates it.
      const isNew = list.code !== 0 && /not found|does not exist|10007/i.test(list.stdout + list.stderr);
      if (list.code !== 0 && !isNew) {
        const said = (list.stderr + list.stdout).trim().split("\n").slice(0, 6).join("\n");
        return [
          `The secrets of ${service(name)} can't be listed. With several accounts set CLOUDFLARE_ACCOUNT_ID. wrangler said:\n${said}`,
        ];
      }
      const there = isNew ? new Set<string>() : namesIn(list.stdout);
      return secretsOf(name, secrets)
        .filter((secret) => !there.has(secret))
        .map((secret) => {
          const mend = `npx wrangler secret put ${secret} --name ${service(name)}`;
          return `Secret ${secret} of ${service(name)} is not set. Run: ${mend}`;
        });
    },
    deploy: async ({ function: name, built, cron, commands }) => {
      const argv = [
        ...["wrangler", "deploy", relative(process.cwd(), built.file), "--no-bundle", "--config", FILE],
        // Told a name, wrangler adds no environment's name to it.
        ...["--name", service(name), ...(env ? ["--env", env] : []), "--upload-source-maps"],
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
    return unstable_readConfig({ config: path, ...(env && { env }) }, { hideWarnings: true });
  } catch (error) {
    const reason = messageOf(error);
    const isNoEnv = env && reason.includes("No environment found");
    const add = `${FILE} has no [env.${env}]. Add it, with [env.${env}.vars]`;
    throw new PawlError("setting_invalid", isNoEnv ? add : reason, { cause: error });
  }
}

function namesIn(json: string): Set<string> {
  try {
    return new Set((JSON.parse(json) as { name: string }[]).map(({ name }) => name));
  } catch {
    return new Set();
  }
}
