import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import type { Commands } from "./commands.ts";
import type { Deployment } from "./platform.ts";

export interface AccessOptions {
  readonly project: string;
  readonly region: string;
  /** SERVICE_ACCOUNT; {function} stands for a function's name. None: Cloud Run's default account. */
  readonly account: string | undefined;
  /** The secret that callers of POST /run have to know. */
  readonly runSecret: string;
  service(name: string): string;
  gcloud(...argv: string[]): string[];
}

/**
 * Who functions are on Google Cloud, and who may call them. All but the API are closed to the world: Google itself
 * refuses a request without the token of an account that is let in here. Cloud Scheduler and the functions that wake
 * others sign in so (functions/wiring/sign-in.ts), and know PAWL_RUN_SECRET besides.
 */
export function gcpAccess({ project, region, account, runSecret, service, gcloud }: AccessOptions) {
  let byDefault: Promise<string> | undefined;

  const defaultAccount = async (commands: Commands): Promise<string> => {
    const suffix = "-compute@developer.gserviceaccount.com";
    const described = await commands
      .ask(["gcloud", "projects", "describe", project, "--format=value(projectNumber)"])
      .catch(() => undefined);
    const number = described?.stdout.trim() ?? "";
    if (/^\d+$/.test(number)) return number + suffix;
    if (commands.isDry) return `<project-number>${suffix}`;
    throw new PawlError(
      "deploy_failed",
      `The number of project ${project} is not known, and so not the account that functions run as: ${described?.stderr.trim()}`,
    );
  };
  /** Service accounts of one's own, or Cloud Run's default, which all functions share. */
  const accountOf = async (name: string, commands: Commands): Promise<string> => {
    if (account) return account.replaceAll("{function}", name);
    byDefault ??= defaultAccount(commands);
    return byDefault;
  };

  return {
    accountOf,
    /** A secret that was just created can be read by nobody. */
    toRead: (name: string, secret: string): string | undefined =>
      account &&
      gcloud(
        ...["secrets", "add-iam-policy-binding", secret],
        ...["--member", `serviceAccount:${account.replaceAll("{function}", name)}`],
        ...["--role", "roles/secretmanager.secretAccessor"],
      ).join(" "),
    missing: async (name: string, commands: Commands): Promise<readonly string[]> => {
      if (!account) return [];
      const email = await accountOf(name, commands);
      const found = await commands.ask(gcloud("iam", "service-accounts", "describe", email));
      if (found.code === 0) return [];
      const create = gcloud("iam", "service-accounts", "create", email.split("@")[0] ?? "").join(" ");
      return [`Service account ${email} (SERVICE_ACCOUNT) is not there. Run: ${create}`];
    },
    /** Lets in who wakes this function: the scheduler, which signs in as the function itself, and other functions. */
    letIn: async ({ function: name, wakers, commands, tell }: Deployment): Promise<void> => {
      const own = await accountOf(name, commands);
      const others = await Promise.all(wakers.map((one) => accountOf(one, commands)));
      const policy = gcloud("run", "services", "get-iam-policy", service(name), "--region", region);
      const there = commands.isDry ? "" : (await commands.ask([...policy, "--format=json"])).stdout;
      for (const email of new Set([own, ...others])) {
        if (there.includes(`"serviceAccount:${email}"`)) continue;
        const bind = gcloud("run", "services", "add-iam-policy-binding", service(name), "--region", region);
        try {
          await commands.make([
            ...bind,
            ...["--member", `serviceAccount:${email}`, "--role", "roles/run.invoker", "--quiet"],
          ]);
        } catch (error) {
          // Without it, tasks that the other one submits wait for the minute's cron.
          if (email === own) throw error;
          tell(`! ${email} can't wake ${service(name)}: ${messageOf(error)}`);
        }
      }
    },
    schedule: async (name: string, cron: string, url: string, commands: Commands): Promise<void> => {
      const describe = gcloud("scheduler", "jobs", "describe", service(name), "--location", region);
      const exists = !commands.isDry && (await commands.ask(describe)).code === 0;
      const email = await accountOf(name, commands);
      // The secret goes by a file: a command's arguments are seen by everyone on the machine.
      const folder = mkdtempSync(join(tmpdir(), "pawl-deploy-"));
      try {
        const flags = join(folder, "flags.yaml");
        const secret = JSON.stringify(commands.isDry ? "" : await secretValue(commands));
        // Authorization is the scheduler's own, for its token; jobs of earlier deploys have the secret there.
        const headers = exists
          ? `--update-headers:\n  X-Pawl-Run-Secret: ${secret}\n--remove-headers: Authorization\n`
          : `--headers:\n  X-Pawl-Run-Secret: ${secret}\n`;
        writeFileSync(flags, headers, { mode: 0o600 });
        const verb = exists ? "update" : "create";
        await commands.make([
          ...gcloud("scheduler", "jobs", verb, "http", service(name), "--location", region),
          ...["--schedule", cron, "--uri", `${url}/run`, "--http-method", "POST"],
          ...["--oidc-service-account-email", email, "--oidc-token-audience", url],
          ...["--attempt-deadline", "30m", "--flags-file", flags, "--quiet"],
        ]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };

  async function secretValue(commands: Commands): Promise<string> {
    const found = await commands.ask(
      gcloud("secrets", "versions", "access", "latest", "--secret", runSecret),
    );
    if (found.code === 0) return found.stdout.trim();
    throw new PawlError("deploy_failed", `Secret ${runSecret} can't be read: ${found.stderr.trim()}`);
  }
}
