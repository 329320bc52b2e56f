import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseEnv } from "node:util";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { deployVariables } from "../../shared/settings/tools.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import type { Commands } from "./commands.ts";
import { type Platform, secretsOf } from "./deployment.ts";

/** Google Cloud Run functions, by gcloud, with the settings of gcp.env in this folder; Cloud Scheduler wakes them. */
export function gcp(env?: string): Platform {
  const source = env ? `gcp.${env}.env` : "gcp.env";
  const file = readSettings(source);
  const { REGION: region = "", GOOGLE_CLOUD_PROJECT: project = "", SECRETS = [] } = readVariables(file).given;
  for (const [name, value] of Object.entries({ REGION: region, GOOGLE_CLOUD_PROJECT: project })) {
    if (!value) throw new PawlError("setting_invalid", `${name} is not set in ${source}`);
  }
  const settings = Object.fromEntries(Object.entries(file).filter(([name]) => !(name in deployVariables)));
  const secrets = ["PAWL_RUN_SECRET", ...SECRETS];
  const service = (name: string) => ["pawl", name, env].filter(Boolean).join("-");
  const secretName = (variable: string) => {
    const name = variable
      .replace(/^PAWL_/, "")
      .toLowerCase()
      .replaceAll("_", "-");
    return ["pawl", env, name].filter(Boolean).join("-");
  };
  const gcloud = (...argv: string[]) => ["gcloud", ...argv, "--project", project];

  return {
    settings,
    source,
    secrets,
    missing: async ({ function: name, commands }) => {
      const who = await commands.ask([
        "gcloud",
        "auth",
        "list",
        "--filter=status:ACTIVE",
        "--format=value(account)",
      ]);
      if (who.code !== 0 || who.stdout.trim() === "")
        return ["Nobody is logged in to Google Cloud. Run: gcloud auth login"];
      const missing: string[] = [];
      for (const secret of secretsOf(name, secrets)) {
        const name = secretName(secret);
        const found = await commands.ask(gcloud("secrets", "describe", name));
        if (found.code === 0) continue;
        if (found.stderr && !/NOT_FOUND|not found/i.test(found.stderr)) {
          missing.push(
            `Secret ${name} can't be looked up. gcloud said: ${found.stderr.trim().slice(0, 600)}`,
          );
          continue;
        }
        const mend = gcloud("secrets", "create", name, "--data-file=-").join(" ");
        missing.push(
          `Secret ${name} (${secret}) is not there. Run, with its value on standard input: ${mend}`,
        );
      }
      return missing;
    },
    deploy: async ({ function: name, built, cron, commands }) => {
      // Any comma may be part of a value, so another character separates them.
      const variables = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      const kept = secretsOf(name, secrets).map((one) => `${one}=${secretName(one)}:latest`);
      await commands.make([
        ...gcloud("run", "deploy", service(name), "--source", relative(process.cwd(), built.folder)),
        ...["--function", "pawl", "--base-image", "nodejs24", "--region", region, "--timeout", "3600"],
        ...["--set-env-vars", `^|^${variables.join("|")}`],
        ...(kept.length > 0 ? ["--set-secrets", kept.join(",")] : []),
        // Callers are told apart by Pawl's own secret and tokens.
        ...["--allow-unauthenticated", "--quiet"],
      ]);
      if (commands.isDry) {
        if (cron) await schedule(name, cron, "https://<its-address>", commands);
        return service(name);
      }
      const describe = gcloud("run", "services", "describe", service(name), "--region", region);
      const described = await commands.ask([...describe, "--format=value(status.url)"]);
      const url = described.stdout.trim();
      if (described.code !== 0 || !url.startsWith("https://"))
        throw new PawlError(
          "deploy_failed",
          `The address of ${service(name)} is not known: ${described.stderr.trim()}`,
        );
      if (cron) await schedule(name, cron, url, commands);
      return url;
    },
  };

  async function schedule(name: string, cron: string, url: string, commands: Commands): Promise<void> {
    const describe = gcloud("scheduler", "jobs", "describe", service(name), "--location", region);
    const exists = !commands.isDry && (await commands.ask(describe)).code === 0;
    // The secret goes by a file: a command's arguments are seen by everyone on the machine.
    const folder = mkdtempSync(join(tmpdir(), "pawl-deploy-"));
    try {
      const flags = join(folder, "flags.yaml");
      const header = `Bearer ${commands.isDry ? "" : await runSecret(commands)}`;
      const option = exists ? "--update-headers" : "--headers";
      writeFileSync(flags, `${option}:\n  Authorization: ${JSON.stringify(header)}\n`, { mode: 0o600 });
      await commands.make([
        ...gcloud(
          "scheduler",
          "jobs",
          exists ? "update" : "create",
          "http",
          service(name),
          "--location",
          region,
        ),
        ...["--schedule", cron, "--uri", `${url}/run`, "--http-method", "POST", "--attempt-deadline", "30m"],
        ...["--flags-file", flags, "--quiet"],
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  async function runSecret(commands: Commands): Promise<string> {
    const name = secretName("PAWL_RUN_SECRET");
    const found = await commands.ask(gcloud("secrets", "versions", "access", "latest", "--secret", name));
    if (found.code === 0) return found.stdout.trim();
    throw new PawlError("deploy_failed", `Secret ${name} can't be read: ${found.stderr.trim()}`);
  }
}

function readSettings(file: string): Record<string, string> {
  try {
    return parseEnv(readFileSync(resolve(file), "utf8")) as Record<string, string>;
  } catch (error) {
    throw new PawlError(
      "setting_invalid",
      `${resolve(file)} can't be read: ${messageOf(error)}. It holds the settings, as NAME=value`,
    );
  }
}
