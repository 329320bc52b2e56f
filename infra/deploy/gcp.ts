import { readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { parseEnv } from "node:util";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { deployVariables } from "../../shared/settings/tools.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import type { CommandResult } from "./commands.ts";
import { gcpAccess } from "./gcp-access.ts";
import { lookedIn } from "./gcp-look.ts";
import type { Platform } from "./platform.ts";
import { isOwnSecret } from "./secrets.ts";

/** Google Cloud Run functions, by gcloud, with the settings of gcp.env in this folder; Cloud Scheduler wakes them. */
export function gcp(env?: string): Platform {
  const source = env ? `gcp.${env}.env` : "gcp.env";
  const file = readSettings(source);
  const { given, problems } = readVariables(file);
  const { REGION: region = "", GOOGLE_CLOUD_PROJECT: project = "", SECRETS = [], OWN_SECRETS = [] } = given;
  // The others are found when the function's own settings are checked.
  const wrong = problems.filter((problem) => /^(OWN_SECRETS|SERVICE_ACCOUNT) /.test(problem));
  if (wrong.length > 0) throw new PawlError("setting_invalid", `${source}: ${wrong.join("\n")}`);
  for (const [name, value] of Object.entries({ REGION: region, GOOGLE_CLOUD_PROJECT: project })) {
    if (!value) throw new PawlError("setting_invalid", `${name} is not set in ${source}`);
  }
  const strange = SECRETS.filter((name) => !isOwnSecret(name));
  if (strange.length > 0)
    throw new PawlError(
      "setting_invalid",
      `SECRETS in ${source} names ${strange.join(", ")}, which Pawl itself does not read. Take it out, and declare it in the agent that does: secrets: [${strange.map((one) => JSON.stringify(one)).join(", ")}]`,
    );
  const settings = Object.fromEntries(Object.entries(file).filter(([name]) => !(name in deployVariables)));
  const service = (name: string) => ["pawl", name, env].filter(Boolean).join("-");
  /** What belongs to one function alone has its name: no other secret of ours has an underscore in it. */
  const secretName = (name: string, variable: string) => {
    if (!isOwnSecret(variable) || OWN_SECRETS.includes(variable)) return `${service(name)}_${variable}`;
    const short = variable
      .replace(/^PAWL_/, "")
      .toLowerCase()
      .replaceAll("_", "-");
    return ["pawl", env, short].filter(Boolean).join("-");
  };
  const gcloud = (...argv: string[]) => ["gcloud", ...argv, "--project", project];
  const inRegion = (...argv: string[]) => [...gcloud(...argv), "--region", region];
  const access = gcpAccess({
    project,
    region,
    service,
    gcloud,
    account: given.SERVICE_ACCOUNT,
    runSecret: secretName("dispatch", "PAWL_RUN_SECRET"),
  });

  let asked: Promise<CommandResult> | undefined;
  return {
    target: "gcp",
    settings,
    source,
    kept: [...SECRETS, ...OWN_SECRETS],
    service,
    away: async (commands) => {
      // Once for all functions of a deploy.
      asked ??= commands.ask([
        ...["gcloud", "auth", "list", "--filter=status:ACTIVE", "--format=value(account)"],
      ]);
      const who = await asked;
      return who.code !== 0 || who.stdout.trim() === ""
        ? "Nobody is logged in to Google Cloud. Run: gcloud auth login"
        : undefined;
    },
    look: async (name, commands) => {
      const describe = inRegion("run", "services", "describe", service(name));
      return lookedIn(await commands.ask([...describe, "--format=json"]));
    },
    secretsThere: async (name, needed, commands) => {
      const there = new Set<string>();
      const problems: string[] = [];
      const look = async (secret: string) => {
        const found = await commands.ask(gcloud("secrets", "describe", secretName(name, secret)));
        if (found.code === 0) there.add(secret);
        else if (found.stderr && !/NOT_FOUND|not found/i.test(found.stderr))
          problems.push(
            `Secret ${secretName(name, secret)} can't be looked up. gcloud said: ${found.stderr.trim().slice(0, 600)}`,
          );
      };
      await Promise.all(needed.map(look));
      return problems.length > 0 ? { problem: problems.join("\n") } : there;
    },
    missing: access.missing,
    secretName: (name, secret) => `${secretName(name, secret)} (${secret})`,
    toSet: (name, secret) => {
      const create = gcloud("secrets", "create", secretName(name, secret), "--data-file=-").join(" ");
      const grant = access.toRead(name, secretName(name, secret));
      return `Run, with its value on standard input: ${create}${grant ? `\n  then: ${grant}` : ""}`;
    },
    toDrop: (name) =>
      `nothing of ${service(name)} reads it: this deploy takes it away from there. The secret itself stays; list them with: ${gcloud("secrets", "list").join(" ")}`,
    toGoBack: (name, revision) => {
      const traffic = inRegion("run", "services", "update-traffic", service(name));
      return [[...traffic, "--to-revisions", `${revision}=100`].join(" ")];
    },
    deploy: async (deployment) => {
      const { function: name, kind, built, cron, secrets, manifest, before, commands, tell } = deployment;
      // Any comma may be part of a value, so another character separates them.
      const variables = Object.entries({ ...settings, PAWL_DEPLOYED: manifest });
      const kept = secrets.map((one) => `${one}=${secretName(name, one)}:latest`);
      const account = given.SERVICE_ACCOUNT ? await access.accountOf(name, commands) : undefined;
      await commands.make([
        ...gcloud("run", "deploy", service(name), "--source", relative(process.cwd(), built.folder)),
        ...["--function", "pawl", "--base-image", "nodejs24", "--region", region, "--timeout", "3600"],
        ...["--set-env-vars", `^|^${variables.map(([key, value]) => `${key}=${value}`).join("|")}`],
        ...(kept.length > 0 ? ["--set-secrets", kept.join(",")] : ["--clear-secrets"]),
        ...(account ? ["--service-account", account] : []),
        // The API knows its callers by tokens of its own; nobody but us calls the others.
        ...[kind === "api" ? "--allow-unauthenticated" : "--no-allow-unauthenticated", "--quiet"],
      ]);
      // Traffic that somebody has sent to one revision by hand stays there, whatever is deployed.
      if (before.is === "there" && before.isPinned)
        await commands.make(inRegion("run", "services", "update-traffic", service(name), "--to-latest"));
      if (kind !== "api") await access.letIn(deployment);
      else
        tell(
          `${service(name)} is open to everyone: it knows callers by its own tokens. All others are closed`,
        );
      if (commands.isDry) {
        if (cron) await access.schedule(name, cron, "https://<its-address>", commands);
        return service(name);
      }
      const describe = inRegion("run", "services", "describe", service(name));
      const described = await commands.ask([...describe, "--format=value(status.url)"]);
      const url = described.stdout.trim();
      if (described.code !== 0 || !url.startsWith("https://"))
        throw new PawlError(
          "deploy_failed",
          `The address of ${service(name)} is not known: ${described.stderr.trim()}`,
        );
      if (cron) await access.schedule(name, cron, url, commands);
      return url;
    },
  };
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
