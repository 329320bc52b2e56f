import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type DeployStage, deployStage, GCP, WRANGLER } from "../support/deploying.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

const PAWL_AGENTS_DIR = tempAgents();
writeFileSync(
  join(PAWL_AGENTS_DIR, "worker.ts"),
  `import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent({ secrets: ["OWN_TOKEN"], run: () => 1 });\n`,
);

let stage: DeployStage;
beforeEach(() => {
  stage = deployStage();
  stage.write("wrangler.toml", WRANGLER("wss://nats.test"));
});
afterEach(() => stage[Symbol.dispose]());

const SECRETS = ["PAWL_RUN_SECRET", "OWN_TOKEN"].map((name) => ({ name }));
function cloudflare(deploys: string, secrets: readonly object[] = SECRETS): void {
  const list = `case "$4" in fleet-worker-*) echo '${JSON.stringify(secrets)}';; *) echo '${JSON.stringify(SECRETS)}';; esac`;
  stage.program("wrangler", `case "$1" in secret) ${list};; deploy) ${deploys};; esac`);
}
const all = (...args: string[]) =>
  stage.deploy(["--all", "--env", "staging", "--no-ensure", ...args], { PAWL_AGENTS_DIR });
const deployed = () =>
  stage
    .calls()
    .filter((call) => call.startsWith("deploy ") && !call.includes("--dry-run"))
    .map((call) => /--name fleet-(\w+)-staging/.exec(call)?.[1]);

test("agents first, the API last, with progress", () => {
  cloudflare("echo https://x.test");
  const { code, out, err } = all();
  expect([code, err]).toEqual([0, ""]);
  expect(deployed()).toEqual(["worker", "dispatch", "reconcile", "api"]);
  expect(out).toContain("dispatch (2 of 4)");
  expect(out.trimEnd().split("\n").at(-1)).toBe("worker, dispatch, reconcile, api: deployed");
});

const FAILS = `case "$*" in *fleet-dispatch-*) echo "quota exceeded" >&2; exit 3;; esac`;

test("it stops at the first that fails, and says what was done and what not", () => {
  cloudflare(FAILS);
  const { code, err } = all();
  expect(code).toBe(1);
  expect(err).toContain("dispatch: wrangler deploy");
  expect(err).toContain("quota exceeded");
  expect(err).toContain("Deployed: worker. Not tried: reconcile, api");
  expect(deployed()).toEqual(["worker", "dispatch"]);
});

test("and says so to machines", () => {
  cloudflare(FAILS);
  const json = all("--json");
  expect(json.code).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({
    done: [{ function: "worker" }],
    failed: { function: "dispatch", message: expect.stringContaining("quota exceeded") },
    left: ["reconcile", "api"],
  });
});

test("what one of them lacks is named before anything is changed", () => {
  cloudflare("echo https://x.test", [{ name: "PAWL_RUN_SECRET" }]);
  const { code, err } = all();
  expect(code).toBe(1);
  expect(err).toContain(
    "worker: Secret OWN_TOKEN of fleet-worker-staging is not there. Run: npx wrangler secret put",
  );
  expect(err).not.toContain("dispatch:");
  expect(deployed()).toEqual([]);
});

test("a dry run of all names it too, and ends with 1", () => {
  cloudflare("echo https://x.test", [{ name: "PAWL_RUN_SECRET" }]);
  const dry = all("--dry-run");
  expect(dry.code).toBe(1);
  expect(dry.out).toContain(
    "OWN_TOKEN: missing. Run: npx wrangler secret put OWN_TOKEN --name fleet-worker-staging",
  );
  expect(dry.out).toContain("dry run: nothing was deployed");
  expect(deployed()).toEqual([]);
});

test("Google's platform: the same order, each with its own access", () => {
  stage.write("gcp.env", GCP("tls://nats.test"));
  const google = (deploys = "") =>
    stage.program(
      "gcloud",
      `case "$1 $2" in
  "auth list") echo me@test;;
  "projects describe") echo 4711;;
  "secrets versions") echo secret;;
  "run deploy") ${deploys} ;;
  "run services") case "$*" in *get-iam-policy*) echo '{}';; *json) echo "Cannot find service" >&2; exit 1;; *) echo "https://$4.run.app";; esac;;
  "scheduler jobs") [ "$3" != describe ];;
esac`,
    );
  const run = (...args: string[]) =>
    stage.deploy(["--all", "--target", "gcp", "--no-ensure", ...args], { PAWL_AGENTS_DIR });
  const made = (start: string) =>
    stage.calls().flatMap((call) => (call.startsWith(start) ? [/pawl-(\w+)/.exec(call)?.[1]] : []));
  google(":");
  expect(run("--dry-run")).toMatchObject({
    code: 0,
    out: expect.stringContaining("dry run: nothing was deployed"),
  });
  expect(made("run deploy")).toEqual([]);
  const { code, out, err } = run();
  expect([code, err]).toEqual([0, ""]);
  expect(made("run deploy")).toEqual(["worker", "dispatch", "reconcile", "api"]);
  const open = stage.calls().filter((call) => / --allow-unauthenticated/.test(call));
  expect(open.map((call) => /pawl-(\w+)/.exec(call)?.[1])).toEqual(["api"]);
  expect(made("scheduler jobs create")).toEqual(["worker", "dispatch", "reconcile"]);
  expect(out.trimEnd().split("\n").at(-1)).toBe("worker, dispatch, reconcile, api: deployed");

  google(`case "$3" in pawl-dispatch) echo "quota exceeded" >&2; exit 3;; esac`);
  const failed = run();
  expect(failed.code).toBe(1);
  expect(failed.err).toMatch(/dispatch: gcloud run deploy pawl-dispatch .*\n?quota exceeded/s);
  expect(failed.err).toContain("Deployed: worker. Not tried: reconcile, api");
});

test("a function and --all, or neither, is used wrongly", () => {
  expect(stage.deploy(["worker", "--all"], { PAWL_AGENTS_DIR }).code).toBe(2);
  expect(stage.deploy([], { PAWL_AGENTS_DIR })).toMatchObject({
    code: 2,
    err: expect.stringContaining("Name one function, or give --all"),
  });
});
