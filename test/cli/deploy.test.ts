import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TARGETS } from "../../infra/build/targets.ts";
import { ROOT } from "../../infra/project.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import { agentOf } from "../support/bench.ts";
import { type DeployStage, deployStage, GCP, WRANGLER } from "../support/deploying.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

let stage: DeployStage;
beforeEach(() => {
  stage = deployStage();
});
afterEach(() => stage[Symbol.dispose]());
const program = (name: string, answers: string) => stage.program(name, answers);
const calls = () => stage.calls();
const deploy = (...args: Parameters<DeployStage["deploy"]>) => stage.deploy(...args);

/** Programs that say at once that nobody is logged in. Everything else the real wrangler is asked. */
function loggedOut(): void {
  const real = join(ROOT, "node_modules/.bin/wrangler");
  program(
    "wrangler",
    `[ "$1" != whoami ] || { echo "You are not authenticated."; exit; }; exec '${real}' "$@"`,
  );
  program("gcloud", "");
}

describe.each(TARGETS)("--dry-run from a clean clone with no accounts: %s", (target) => {
  test.each(["echo", "api", "dispatch", "reconcile"])("%s", (name) => {
    // Once for each platform the whole bundle is built, and the real program says that nobody is logged in: both take their time.
    if (name === "echo") {
      stage[Symbol.dispose]();
      stage = deployStage("pawl");
    } else loggedOut();
    const { code, out, err } = deploy([name, "--target", target, "--dry-run"], {}, ROOT);
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`built dist/${target}/${name}/index.js \\(\\d+( of 256)? KiB gzipped\\)`));
    expect(out).toMatch(/NATS_URL in (wrangler.toml|gcp.env) is still the placeholder/);
    expect(out).toContain(`dry run: pawl-${name} was not deployed`);
    if (name === "echo") expect(out).toMatch(/would ensure PAWL_echo_0_g1 at (wss|tls):\/\/nats.example.com/);
    if (target === "cloudflare") {
      expect(out).toContain(`would run: wrangler deploy dist/cloudflare/${name}/index.js --no-bundle`);
      // wrangler's own dry run was run, and read our bundle and settings.
      expect(out).toMatch(/\| Total Upload: \d+/);
      expect(out).toMatch(/\| env.PAWL_STORE \("firestore"\)/);
      expect(out).toMatch(/--var 'PAWL_DEPLOYED:bundle=[0-9a-f]{12}&digest/);
      expect(out).toMatch(/\| env.PAWL_DEPLOYED \(/);
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
  loggedOut();
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
    stage.write("wrangler.toml", WRANGLER("wss://nats.test"));
    const { code, err } = deploy(["echo"]);
    expect(err).toContain("Nobody is logged in to Cloudflare. Run: npx wrangler login");
    expect(code).toBe(1);
  });

  test("secrets at Cloudflare, and what the doctor says of the settings", () => {
    stage.write("wrangler.toml", WRANGLER("wss://nats.test", 'PAWL_DUPLICATE_WINDOW = "10s"'));
    program(
      "wrangler",
      `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET","type":"secret_text"}]';; esac`,
    );
    const { code, out, err } = deploy(["echo"]);
    expect(out).toMatch(/^! window-shorter-than-retries: .* Set PAWL_DUPLICATE_WINDOW: more than 15s$/m);
    expect(err).toContain(
      "Secret GOOGLE_APPLICATION_CREDENTIALS of fleet-echo is not there. Run: npx wrangler secret put GOOGLE_APPLICATION_CREDENTIALS --name fleet-echo",
    );
    expect(err).not.toContain("Secret PAWL_RUN_SECRET");
    expect(code).toBe(1);
    expect(calls()[0]).toBe("whoami");
    expect(calls().slice(1)).toContain("secret list --name fleet-echo --format json");
    expect(calls().filter((call) => call.startsWith("deploy "))).toEqual([]);
  });

  test("gcloud itself", () => {
    stage.write("gcp.env", GCP("tls://nats.test:4222"));
    const { code, err } = deploy(["echo", "--target", "gcp"], { PATH: `${stage.folder}/bin` });
    expect(err).toContain(
      "gcloud is not installed, or not on the PATH. Install it: https://cloud.google.com/sdk",
    );
    expect(code).toBe(1);
  });

  test("a login and secrets at Google", () => {
    stage.write("gcp.env", GCP("tls://nats.test:4222"));
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
    stage.write("wrangler.toml", WRANGLER("wss://nats.test"));
    expect(deploy(["echo", "--env", "prod"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("wrangler.toml has no [env.prod]. Add it, with [env.prod.vars]"),
    });
    expect(deploy(["echo", "--target", "gcp"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/gcp.env can't be read.*It holds the settings, as NAME=value/),
    });
    stage.write("gcp.env", GCP("tls://nats.test").replace("REGION=europe-west1", ""));
    expect(deploy(["echo", "--target", "gcp"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("REGION is not set in gcp.env"),
    });
  });

  test("settings that contradict each other", () => {
    stage.write("gcp.env", `${GCP("tls://nats.test")}PAWL_RETENTION=1m\n`);
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
  stage.write("wrangler.toml", WRANGLER(nats.wsUrl));
  program(
    "wrangler",
    `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET"}]';; deploy) echo "Deployed at https://fleet-echo-staging.test.workers.dev";; esac`,
  );
  const { code, out, err } = deploy(["echo", "--env", "staging"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/PAWL_echo_0_g1: .*created/);
  expect(out).toContain("deployed https://fleet-echo-staging.test.workers.dev");
  expect(calls().at(-1)).toMatch(
    /^deploy dist\/cloudflare\/echo\/index.js --no-bundle --config wrangler.toml --name fleet-echo-staging --env staging --upload-source-maps --var PAWL_DEPLOYED:bundle=[0-9a-f]{12}&digest.lanes=1&\S* --triggers \* \* \* \* \*$/,
  );
  // A task of older code is under way: the new code would not go on with it.
  const { config } = world(nats, "nats-kv");
  await using deps = await wired({ ...config, settings: { ...config.settings, namespace: "pawl" } });
  await submit(deps, { agent: "echo", lanes: 1, id: "t", input: { text: "hello" } });
  const older = agentOf(async ({ step, sleep }) => {
    await step("older", () => 1);
    await sleep("1h");
  });
  await serve(deps, { name: "echo", agent: older, mode: "drain", stop: new AbortController().signal });
  const again = deploy(["echo", "--env", "staging"]);
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining("PAWL_echo_0_g1: as it should be") });
  expect(again.out).toMatch(
    /! 1 of 1 tasks of echo that are under way would not go on.*\n! t: It returns after/,
  );
  expect(deploy(["echo", "--env", "staging", "--no-replay"]).out).not.toContain("under way");
});

test("Google: deployed, then scheduled; the secret is in no argument", async () => {
  await using nats = await testNats();
  stage.write("gcp.env", GCP(nats.url));
  program(
    "gcloud",
    `case "$1 $2" in
  "auth list") echo me@test;;
  "projects describe") echo 4711;;
  "secrets versions") echo the-very-secret;;
  "run services") echo https://pawl-echo.run.app;;
  "scheduler jobs") case "$3" in describe) exit 1;; *) for f; do case "$f" in *flags.yaml) cp "$f" '${stage.folder}/flags';; esac; done;; esac;;
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
  expect(stage.read("flags")).toBe('--headers:\n  X-Pawl-Run-Secret: "the-very-secret"\n');
});

test("a program that fails is shown with its output", async () => {
  await using nats = await testNats();
  stage.write("wrangler.toml", WRANGLER(nats.wsUrl));
  program(
    "wrangler",
    `case "$1" in secret) echo '[{"name":"PAWL_RUN_SECRET"}]';; deploy) echo "quota exceeded" >&2; exit 3;; esac`,
  );
  const { code, err } = deploy(["echo", "--env", "staging"]);
  expect(code).toBe(1);
  expect(err).toMatch(/wrangler deploy .* ended with 3:\n {2}quota exceeded/);
});
