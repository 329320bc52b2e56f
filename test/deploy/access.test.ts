import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type DeployStage, deployStage, GCP } from "../support/deploying.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

const PAWL_AGENTS_DIR = tempAgents();
for (const [name, body] of Object.entries({
  ticket: '{ secrets: ["JIRA_TOKEN"], run: () => 1 }',
  plain: "{ run: () => 1 }",
}))
  writeFileSync(
    join(PAWL_AGENTS_DIR, `${name}.ts`),
    `import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent(${body});\n`,
  );
const env = { PAWL_AGENTS_DIR };

let stage: DeployStage;
beforeEach(() => {
  stage = deployStage();
});
afterEach(() => stage[Symbol.dispose]());

/** A Google where everything is there, and every secret's value is the same. */
function google(more = ""): void {
  stage.program(
    "gcloud",
    `case "$1 $2" in
  "auth list") echo me@test;;
  "projects describe") echo 4711;;
  "secrets versions") echo the-very-secret;;
  ${more}
  "run services") case "$3" in
    get-iam-policy) echo '{"bindings":[{"members":["serviceAccount:known@fleet-1.iam.gserviceaccount.com"]}]}';;
    describe) case "$*" in *json) echo "Cannot find service" >&2; exit 1;; *) echo "https://$4.run.app";; esac;;
  esac;;
  "scheduler jobs") case "$3" in describe) exit "\${JOB:-1}";; *) for f; do case "$f" in *flags.yaml) cp "$f" '${stage.folder}/flags';; esac; done;; esac;;
esac`,
  );
}
const made = (start: string) => stage.calls().filter((call) => call.startsWith(start));
const deploy = (name: string, ...args: string[]) =>
  stage.deploy([name, "--target", "gcp", "--no-ensure", ...args], env);

test("a function that only Pawl calls is closed; its scheduler signs in, with the secret beside", () => {
  stage.write("gcp.env", GCP("tls://nats.test"));
  google();
  const { code, err, out } = deploy("plain");
  expect([code, err]).toEqual([0, ""]);
  expect(made("run deploy")[0]).toContain("--no-allow-unauthenticated");
  const account = "4711-compute@developer.gserviceaccount.com";
  expect(made("run services add-iam-policy-binding")).toEqual([
    `run services add-iam-policy-binding pawl-plain --region europe-west1 --project fleet-1 --member serviceAccount:${account} --role roles/run.invoker --quiet`,
  ]);
  expect(made("scheduler jobs create")[0]).toContain(
    `--oidc-service-account-email ${account} --oidc-token-audience https://pawl-plain.run.app`,
  );
  expect(stage.read("flags")).toBe('--headers:\n  X-Pawl-Run-Secret: "the-very-secret"\n');
  expect(stage.calls().join("\n") + out).not.toContain("the-very-secret");
});

test("a job of an earlier deploy loses the header that the scheduler needs for itself", () => {
  stage.write("gcp.env", GCP("tls://nats.test"));
  google();
  expect(stage.deploy(["plain", "--target", "gcp", "--no-ensure"], { ...env, JOB: "0" }).code).toBe(0);
  expect(made("scheduler jobs update")).toHaveLength(1);
  expect(stage.read("flags")).toBe(
    '--update-headers:\n  X-Pawl-Run-Secret: "the-very-secret"\n--remove-headers: Authorization\n',
  );
});

const OPEN = "pawl-api is open to everyone: it knows callers by its own tokens. All others are closed";

test("the API stays open, says why, and has no scheduler", () => {
  stage.write("gcp.env", GCP("tls://nats.test"));
  google();
  const { code, out } = deploy("api");
  expect(code).toBe(0);
  expect(out.split("\n")).toContain(OPEN);
  expect(deploy("api", "--dry-run").out.split("\n")).toContain(OPEN);
  expect(deploy("plain", "--dry-run").out).not.toContain("open to everyone");
  expect(made("run deploy")[0]).toMatch(/ --allow-unauthenticated/);
  expect(made("run services add-iam-policy-binding")).toEqual([]);
  expect(made("scheduler")).toEqual([]);
});

test("each function is given its own secrets and no other's", () => {
  const secrets = "NATS_CREDS,ANTHROPIC_API_KEY,PAWL_SEAL_KEY";
  stage.write("gcp.env", GCP("tls://nats.test").replace("SECRETS=NATS_CREDS", `SECRETS=${secrets}`));
  google();
  const given = (name: string) => {
    expect(deploy(name).code).toBe(0);
    const call = made(`run deploy pawl-${name} `)[0] ?? "";
    return (/--set-secrets (\S+)/.exec(call)?.[1] ?? "").split(",");
  };
  const common = ["NATS_CREDS=pawl-nats-creds:latest", "PAWL_SEAL_KEY=pawl-seal-key:latest"];
  const run = "PAWL_RUN_SECRET=pawl-run-secret:latest";
  const model = "ANTHROPIC_API_KEY=pawl-anthropic-api-key:latest";
  const own = "JIRA_TOKEN=pawl-ticket_JIRA_TOKEN:latest";
  expect(given("ticket").sort()).toEqual([...common, run, model, own].sort());
  expect(given("plain").sort()).toEqual([...common, run, model].sort());
  expect(given("dispatch").sort()).toEqual([...common, run].sort());
  expect(given("api").sort()).toEqual([...common].sort());
});

test("an identity at NATS may be each function's own", () => {
  const env = GCP("tls://nats.test").replace("SECRETS=", "OWN_SECRETS=");
  stage.write("gcp.env", env);
  google();
  expect(deploy("api").code).toBe(0);
  expect(made("run deploy")[0]).toContain("--set-secrets NATS_CREDS=pawl-api_NATS_CREDS:latest ");
  stage.write("gcp.env", env.replace("OWN_SECRETS=", "OWN_SECRETS=PAWL_SEAL_KEY,"));
  expect(deploy("api")).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      'OWN_SECRETS is "PAWL_SEAL_KEY,NATS_CREDS"; it should be some of NATS_CREDS',
    ),
  });
});

test("an API that wakes others knows what they ask for", () => {
  stage.write(
    "gcp.env",
    `${GCP("tls://nats.test")}PAWL_WAKE_URL=https://pawl-{agent}-4711.europe-west1.run.app/run\n`,
  );
  google();
  expect(deploy("api").code).toBe(0);
  expect(made("run deploy")[0]).toContain("PAWL_RUN_SECRET=pawl-run-secret:latest");
});

test("an account for each function: created first, and let in where it wakes", () => {
  const account = "SERVICE_ACCOUNT=pawl-{function}@fleet-1.iam.gserviceaccount.com\n";
  stage.write("gcp.env", GCP("tls://nats.test") + account);
  google(`"iam service-accounts") [ "$4" != pawl-ticket@fleet-1.iam.gserviceaccount.com ];;
  "secrets describe") [ "$3" != pawl-ticket_JIRA_TOKEN ];;`);
  const refused = deploy("ticket");
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(
    "Service account pawl-ticket@fleet-1.iam.gserviceaccount.com (SERVICE_ACCOUNT) is not there. Run: gcloud iam service-accounts create pawl-ticket --project fleet-1",
  );
  expect(refused.err).toContain(
    "then: gcloud secrets add-iam-policy-binding pawl-ticket_JIRA_TOKEN --member serviceAccount:pawl-ticket@fleet-1.iam.gserviceaccount.com --role roles/secretmanager.secretAccessor --project fleet-1",
  );
  expect(made("run deploy")).toEqual([]);

  // One that may wake it and is not there yet is named, and no reason to fail.
  google(
    `"run services") case "$*" in *api@*) echo "api does not exist" >&2; exit 1;; *describe*json) exit 1;; *describe*) echo https://x.run.app;; esac;;`,
  );
  const { code, out, err } = deploy("plain");
  expect([code, err]).toEqual([0, ""]);
  expect(made("run deploy")[0]).toContain("--service-account pawl-plain@fleet-1.iam.gserviceaccount.com");
  const bound = made("run services add-iam-policy-binding").map((call) => /pawl-(\w+)@/.exec(call)?.[1]);
  expect(bound.sort()).toEqual(["api", "dispatch", "plain", "ticket"]);
  expect(out).toContain("! pawl-api@fleet-1.iam.gserviceaccount.com can't wake pawl-plain");
});

test("SECRETS with an agent's own is refused, with where it belongs", () => {
  stage.write(
    "gcp.env",
    GCP("tls://nats.test").replace("SECRETS=NATS_CREDS", "SECRETS=NATS_CREDS,JIRA_TOKEN"),
  );
  expect(deploy("ticket", "--dry-run")).toMatchObject({
    code: 2,
    err: expect.stringContaining('declare it in the agent that does: secrets: ["JIRA_TOKEN"]'),
  });
});
