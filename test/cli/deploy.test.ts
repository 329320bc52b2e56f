import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { ROOT, TARGETS } from "../../infra/build/targets.ts";
import { ofThisRun } from "../support/servers/runners.ts";
import { testNats } from "../support/servers/stores.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-deploy-test-"));
  mkdirSync(join(folder, "bin"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program of this name that writes down its arguments, and answers as told. */
function program(name: string, answers: string): void {
  const path = join(folder, "bin", name);
  writeFileSync(path, `#!/bin/sh\necho "$*" >> '${folder}/calls'\n${answers}\n`);
  chmodSync(path, 0o755);
}
const calls = () => readFileSync(join(folder, "calls"), "utf8").trim().split("\n");

function deploy(args: string[], env: Record<string, string> = {}, cwd = folder) {
  const PATH = [join(folder, "bin"), "/usr/bin", "/bin"].join(delimiter);
  const own = { PATH, HOME: folder, ...ofThisRun(), CI: "true", ...env };
  const { pawl } = inject("programs");
  const result = spawnSync(process.execPath, [pawl, "deploy", ...args], { cwd, env: own, encoding: "utf8" });
  return { code: result.status, out: result.stdout, err: result.stderr };
}

const WRANGLER = (url: string) => `name = "fleet"
compatibility_date = "2026-10-23"
[vars]
NATS_URL = "${url}"
PAWL_STORE = "firestore"
GOOGLE_CLOUD_PROJECT = "fleet-1"
[env.staging.vars]
NATS_URL = "${url}"
PAWL_STORE = "nats-kv"
`;
const GCP = (url: string) =>
  `GOOGLE_CLOUD_PROJECT=fleet-1\nREGION=europe-west1\nNATS_URL=${url}\nPAWL_STORE=firestore\nSECRETS=NATS_CREDS\n`;

describe.each(TARGETS)("--dry-run from a clean clone with no accounts: %s", (target) => {
  test.each(["echo", "api", "dispatch", "reconcile"])("%s", (name) => {
    const { code, out, err } = deploy([name, "--target", target, "--dry-run"], {}, ROOT);
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`built dist/${target}/${name}/index.js \\(\\d+ KiB gzipped\\)`));
    expect(out).toMatch(/NATS_URL in (wrangler.toml|gcp.env) is still the placeholder/);
    expect(out).toContain(`dry run: pawl-${name} was not deployed`);
    if (name === "echo") expect(out).toMatch(/would ensure PAWL_echo_0_g1 at (wss|tls):\/\/nats.example.com/);
    if (target === "cloudflare") {
      expect(out).toContain(`would run: wrangler deploy dist/cloudflare/${name}/index.js --no-bundle`);
      // wrangler's own dry run was run, and read our bundle and settings.
      expect(out).toMatch(/\| Total Upload: \d+/);
      expect(out).toMatch(/\| env.PAWL_STORE \("firestore"\)/);
    } else {
      expect(out).toContain(
        `would run: gcloud run deploy pawl-${name} --source dist/gcp/${name} --project your-project`,
      );
    }
    const cron = { echo: "* * * * *", dispatch: "* * * * *", reconcile: "0 6 * * 1", api: undefined }[name];
    expect(out.includes("PAWL_WAKE_URL is not in")).toBe(name === "dispatch" || name === "reconcile");
    if (cron) expect(out).toContain(`'${cron}'`);
    else expect(out).not.toMatch(/--triggers|scheduler/);
  });
});

test("--json says the same to a machine", () => {
  const { code, out } = deploy(["api", "--target", "gcp", "--dry-run", "--json"], {}, ROOT);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    function: "api",
    target: "gcp",
    service: "pawl-api",
    dryRun: true,
    bundle: { file: "dist/gcp/api/index.js" },
    commands: [expect.stringMatching(/^gcloud run deploy pawl-api/)],
    warnings: [expect.stringMatching(/placeholder/), expect.stringMatching(/placeholder/)],
  });
});

describe("what is missing is named, with what mends it, and nothing is changed", () => {
  test("placeholders", () => {
    const { code, err } = deploy(["echo"], {}, ROOT);
    expect(code).toBe(2);
    expect(err).toContain("NATS_URL in wrangler.toml is still the placeholder wss://nats.example.com");
  });

  test("a login to Cloudflare: the real wrangler says so", () => {
    writeFileSync(join(folder, "wrangler.toml"), WRANGLER("wss://nats.test"));
    const { code, err } = deploy(["echo"]);
    expect(err).toContain("Nobody is logged in to Cloudflare. Run: npx wrangler login");
    expect(code).toBe(1);
  });

  test("secrets at Cloudflare", () => {
    writeFileSync(join(folder, "wrangler.toml"), WRANGLER("wss://nats.test"));
    program(
      "wrangler",
      `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET","type":"secret_text"}]';; esac`,
    );
    const { code, err } = deploy(["echo"]);
    expect(err).toContain(
      "Secret GOOGLE_APPLICATION_CREDENTIALS of fleet-echo is not set. Run: npx wrangler secret put GOOGLE_APPLICATION_CREDENTIALS --name fleet-echo",
    );
    expect(err).not.toContain("Secret PAWL_RUN_SECRET");
    expect(code).toBe(1);
    expect(calls()).toEqual(["whoami", "secret list --name fleet-echo --format json"]);
  });

  test("gcloud itself", () => {
    writeFileSync(join(folder, "gcp.env"), GCP("tls://nats.test:4222"));
    const { code, err } = deploy(["echo", "--target", "gcp"], { PATH: join(folder, "bin") });
    expect(err).toContain(
      "gcloud is not installed, or not on the PATH. Install it: https://cloud.google.com/sdk",
    );
    expect(code).toBe(1);
  });

  test("a login and secrets at Google", () => {
    writeFileSync(join(folder, "gcp.env"), GCP("tls://nats.test:4222"));
    program("gcloud", "");
    expect(deploy(["echo", "--target", "gcp"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("Nobody is logged in to Google Cloud. Run: gcloud auth login"),
    });
    program(
      "gcloud",
      `case "$1 $2" in "auth list") echo me@test;; "secrets describe") [ "$3" = pawl-run-secret ];; esac`,
    );
    const { code, err } = deploy(["echo", "--target", "gcp"]);
    expect(code).toBe(1);
    expect(err).toContain(
      "Secret pawl-nats-creds (NATS_CREDS) is not there. Run, with its value on standard input: gcloud secrets create pawl-nats-creds --data-file=- --project fleet-1",
    );
    expect(err).not.toContain("pawl-run-secret (");
  });

  test("an environment, a settings file, a region", () => {
    writeFileSync(join(folder, "wrangler.toml"), WRANGLER("wss://nats.test"));
    expect(deploy(["echo", "--env", "prod"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("wrangler.toml has no [env.prod]. Add it, with [env.prod.vars]"),
    });
    expect(deploy(["echo", "--target", "gcp"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/gcp.env can't be read.*It holds the settings, as NAME=value/),
    });
    writeFileSync(join(folder, "gcp.env"), GCP("tls://nats.test").replace("REGION=europe-west1", ""));
    expect(deploy(["echo", "--target", "gcp"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("REGION is not set in gcp.env"),
    });
  });

  test("settings that contradict each other", () => {
    writeFileSync(join(folder, "gcp.env"), `${GCP("tls://nats.test")}PAWL_RETENTION=1m\n`);
    expect(deploy(["echo", "--target", "gcp", "--dry-run"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("PAWL_RETENTION=1m is shorter than the redelivery horizon"),
    });
  });
});

test("wrong arguments end with 2", () => {
  for (const args of [[], ["echo", "--target", "aws"], ["echo", "extra"], ["nobody"], ["echo", "--what"]])
    expect(deploy(args, {}, ROOT).code, args.join(" ")).toBe(2);
});

test("Cloudflare: streams are ensured, then the bundle is deployed, under the environment's name", async () => {
  await using nats = await testNats();
  writeFileSync(join(folder, "wrangler.toml"), WRANGLER(nats.wsUrl));
  program(
    "wrangler",
    `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET"}]';; deploy) echo "Deployed at https://fleet-echo-staging.test.workers.dev";; esac`,
  );
  const { code, out, err } = deploy(["echo", "--env", "staging"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/PAWL_echo_0_g1: .*created/);
  expect(out).toContain("deployed https://fleet-echo-staging.test.workers.dev");
  expect(calls().at(-1)).toBe(
    "deploy dist/cloudflare/echo/index.js --no-bundle --config wrangler.toml --name fleet-echo-staging --env staging --upload-source-maps --triggers * * * * *",
  );
  expect(deploy(["echo", "--env", "staging"]).out).toContain("PAWL_echo_0_g1: as it should be");
});

test("Google: deployed, then scheduled; the secret is in no argument", async () => {
  await using nats = await testNats();
  writeFileSync(join(folder, "gcp.env"), GCP(nats.url));
  program(
    "gcloud",
    `case "$1 $2" in
  "auth list") echo me@test;;
  "secrets versions") echo the-very-secret;;
  "run services") echo https://pawl-echo.run.app;;
  "scheduler jobs") case "$3" in describe) exit 1;; *) for f; do case "$f" in *flags.yaml) cp "$f" '${folder}/flags';; esac; done;; esac;;
esac`,
  );
  const { code, out, err } = deploy(["echo", "--target", "gcp"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("deployed https://pawl-echo.run.app");
  const made = calls();
  expect(made).toContainEqual(
    expect.stringMatching(/^run deploy pawl-echo --source dist\/gcp\/echo --project fleet-1 --function pawl/),
  );
  expect(made.at(-1)).toMatch(
    /^scheduler jobs create http pawl-echo .*--uri https:\/\/pawl-echo.run.app\/run/,
  );
  expect(made.join("\n") + out).not.toContain("the-very-secret");
  expect(readFileSync(join(folder, "flags"), "utf8")).toBe(
    '--headers:\n  Authorization: "Bearer the-very-secret"\n',
  );
});

test("a program that fails is shown with its output", async () => {
  await using nats = await testNats();
  writeFileSync(join(folder, "wrangler.toml"), WRANGLER(nats.wsUrl));
  program(
    "wrangler",
    `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET"}]';; deploy) echo "quota exceeded" >&2; exit 3;; esac`,
  );
  const { code, err } = deploy(["echo", "--env", "staging"]);
  expect(code).toBe(1);
  expect(err).toMatch(/wrangler deploy .* ended with 3:\n {2}quota exceeded/);
});
