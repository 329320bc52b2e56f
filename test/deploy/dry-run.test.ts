import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DeployStage, deployStage, GCP, WRANGLER } from "../support/deploying.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

const PAWL_AGENTS_DIR = tempAgents();
writeFileSync(
  join(PAWL_AGENTS_DIR, "ticket.ts"),
  `import { defineAgent } from "${SHARED}/agent.ts";
export default defineAgent({ secrets: ["JIRA_TOKEN"], limits: { lanes: 2 }, run: () => 1 });\n`,
);
const env = { PAWL_AGENTS_DIR };

let stage: DeployStage;
beforeEach(() => {
  stage = deployStage();
});
afterEach(() => stage[Symbol.dispose]());

const version = (settings: Record<string, string>, secrets: readonly string[] = []) => ({
  resources: {
    bindings: [
      ...Object.entries(settings).map(([name, text]) => ({ name, type: "plain_text", text })),
      ...secrets.map((name) => ({ name, type: "secret_text" })),
    ],
  },
});

const SETTINGS = { NATS_URL: "wss://nats.test", PAWL_STORE: "firestore", GOOGLE_CLOUD_PROJECT: "fleet-1" };
const ACK_WAIT = 'PAWL_ACK_WAIT: not set → "60s"';
const OF_DISPATCH = "&ticket.dispatchTimeout=60000ms&ticket.schedules=none";

/** What is deployed: an older ticket, a dispatch that knows of one lane, an older api, and no reconcile. */
function atCloudflare(): void {
  stage.write("wrangler.toml", WRANGLER("wss://nats.test", 'PAWL_ACK_WAIT = "60s"'));
  const versions = {
    "v-ticket": version(
      { ...SETTINGS, PAWL_ACK_WAIT: "30s", PAWL_DEPLOYED: "bundle=000000000000&ticket.lanes=1" },
      ["PAWL_RUN_SECRET", "OLD_TOKEN"],
    ),
    "v-dispatch": version({ ...SETTINGS, PAWL_DEPLOYED: `bundle=1&ticket.lanes=1${OF_DISPATCH}` }),
    "v-api": version({ ...SETTINGS, PAWL_DEPLOYED: "bundle=1&ticket.lanes=2&ticket.input=any" }),
  };
  for (const [id, one] of Object.entries(versions)) stage.write(`${id}.json`, JSON.stringify(one));
  stage.program(
    "wrangler",
    `case "$1 $2" in
  "deployments status") case "$4" in
    fleet-reconcile) echo "This Worker does not exist on your account. [code: 10007]" >&2; exit 1;;
    *) echo "{\\"created_on\\":\\"2026-11-17T09:00:00Z\\",\\"versions\\":[{\\"version_id\\":\\"v-\${4#fleet-}\\",\\"percentage\\":100}]}";;
  esac;;
  "versions view") cat '${stage.folder}/'"$3.json";;
  "secret list") echo '[{"name":"PAWL_RUN_SECRET"},{"name":"ANTHROPIC_API_KEY"},{"name":"OLD_TOKEN"}]';;
esac`,
  );
}

describe("for whoever is paged", () => {
  test("Cloudflare: what changes, which secrets are missing, what to deploy along, how to go back", () => {
    atCloudflare();
    const { code, out, err } = stage.deploy(["ticket", "--dry-run"], env);
    expect(err).toBe("");
    expect(code).toBe(1);
    const lines = out.split("\n");
    const under = (title: string) => {
      const at = lines.findIndex((line) => line.startsWith(title));
      expect(at, `${title} in ${out}`).toBeGreaterThanOrEqual(0);
      return lines.slice(
        at + 1,
        lines.findIndex((line, i) => i > at && !line.startsWith("  ")),
      );
    };
    expect(under("changes against v-ticket of 2026-11-17T09:00:00Z:")).toEqual([
      expect.stringMatching(/^ {2}code: 000000000000 → [0-9a-f]{12}$/),
      '  PAWL_ACK_WAIT: "30s" → "60s"',
    ]);
    expect(under("secrets:")).toEqual([
      "  PAWL_RUN_SECRET: there",
      "  GOOGLE_APPLICATION_CREDENTIALS: missing. Run: npx wrangler secret put GOOGLE_APPLICATION_CREDENTIALS --name fleet-ticket",
      "  JIRA_TOKEN: missing. Run: npx wrangler secret put JIRA_TOKEN --name fleet-ticket",
      "  OLD_TOKEN: left over: nothing of fleet-ticket reads it. Run: npx wrangler secret delete OLD_TOKEN --name fleet-ticket",
    ]);
    expect(under("to be deployed along:")).toEqual([
      expect.stringMatching(
        /^ {2}api: outdated \(code: 1 → [0-9a-f]{12}, PAWL_ACK_WAIT: not set → "60s"\)\. Run: npx pawl deploy api$/,
      ),
      expect.stringMatching(
        /^ {2}dispatch: outdated \(code: 1 → [0-9a-f]{12}, ticket's lanes: 1 → 2, PAWL_ACK_WAIT: .*\)\. Run: npx pawl deploy dispatch$/,
      ),
      "  reconcile: not deployed. Run: npx pawl deploy reconcile",
    ]);
    expect(under("to go back to v-ticket:")).toEqual([
      "  npx wrangler rollback v-ticket --name fleet-ticket",
      expect.stringContaining("journal_mismatch"),
    ]);
    // Nothing was changed.
    expect(stage.calls().filter((call) => call.startsWith("deploy ") && !call.includes("--dry-run"))).toEqual(
      [],
    );
  });

  test("--json says the same to a machine", () => {
    atCloudflare();
    const { code, out } = stage.deploy(["ticket", "--dry-run", "--json"], env);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      changes: {
        since: "v-ticket of 2026-11-17T09:00:00Z",
        list: [expect.stringMatching(/^code: /), expect.stringMatching(/^PAWL_ACK_WAIT: /)],
      },
      secrets: [
        { name: "PAWL_RUN_SECRET", is: "there" },
        { name: "GOOGLE_APPLICATION_CREDENTIALS", is: "missing" },
        { name: "JIRA_TOKEN", is: "missing" },
        { name: "OLD_TOKEN", is: "left over" },
      ],
      along: [
        { function: "api", is: "outdated", why: [expect.stringMatching(/^code: /), ACK_WAIT] },
        {
          function: "dispatch",
          is: "outdated",
          why: [expect.stringMatching(/^code: /), "ticket's lanes: 1 → 2", ACK_WAIT],
        },
        { function: "reconcile", is: "not deployed" },
      ],
      goBack: { revision: "v-ticket", commands: ["npx wrangler rollback v-ticket --name fleet-ticket"] },
    });
  });

  test("Google: the same, and a secret in a wrong place is not shown", () => {
    stage.write("gcp.env", GCP("tls://nats.test:4222"));
    const service = {
      spec: {
        template: {
          spec: {
            containers: [
              {
                env: [
                  { name: "NATS_URL", value: "tls://nats.test:4222" },
                  { name: "PAWL_STORE", value: "firestore" },
                  { name: "GOOGLE_CLOUD_PROJECT", value: "fleet-1" },
                  { name: "SLACK_TOKEN", value: "xoxb-shown-nowhere" },
                  {
                    name: "PAWL_RUN_SECRET",
                    valueFrom: { secretKeyRef: { name: "pawl-run-secret", key: "latest" } },
                  },
                  {
                    name: "OLD_TOKEN",
                    valueFrom: { secretKeyRef: { name: "pawl-ticket_OLD_TOKEN", key: "latest" } },
                  },
                ],
              },
            ],
          },
        },
      },
      status: { traffic: [{ revisionName: "pawl-ticket-00007-abc", percent: 100 }] },
    };
    stage.write("service.json", JSON.stringify(service));
    stage.program(
      "gcloud",
      `case "$1 $2" in
  "auth list") echo me@test;;
  "projects describe") echo 4711;;
  "secrets describe") [ "$3" = pawl-run-secret ] || { echo "NOT_FOUND: it is not there" >&2; exit 1; };;
  "run services") case "$4" in pawl-ticket) cat '${stage.folder}/service.json';; *) echo "Cannot find service [$4]" >&2; exit 1;; esac;;
esac`,
    );
    const { code, out, err } = stage.deploy(["ticket", "--target", "gcp", "--dry-run"], env);
    expect([code, err]).toEqual([1, ""]);
    expect(out).toContain("code: not known, it was deployed before deploys were recorded");
    expect(out).toContain("SLACK_TOKEN: (not shown) → not set");
    expect(out).not.toContain("xoxb");
    expect(out).toContain("secret JIRA_TOKEN: given from now on");
    expect(out).toContain("secret OLD_TOKEN: taken away");
    expect(out).toContain(
      "JIRA_TOKEN: missing. Run, with its value on standard input: gcloud secrets create pawl-ticket_JIRA_TOKEN --data-file=- --project fleet-1",
    );
    expect(out).toContain("OLD_TOKEN: left over: nothing of pawl-ticket reads it");
    expect(out).toContain(
      "gcloud run services update-traffic pawl-ticket --project fleet-1 --region europe-west1 --to-revisions pawl-ticket-00007-abc=100",
    );
    // Somebody had gone back by hand: the next deploy takes the requests again.
    expect(out).toContain("would run: gcloud run services update-traffic pawl-ticket");
    expect(out).toContain("--to-latest");
  });

  test("with nobody to ask it says so, and ends with 0", () => {
    stage.write("gcp.env", GCP("tls://nats.test:4222"));
    stage.program("gcloud", "");
    const { code, out } = stage.deploy(["ticket", "--target", "gcp", "--dry-run"], env);
    expect(code).toBe(0);
    expect(out).toContain(
      "! What is deployed is not known: Nobody is logged in to Google Cloud. Run: gcloud auth login",
    );
    expect(out).toContain("changes:\n  unknown\n");
    expect(out).toContain("JIRA_TOKEN: unknown\n");
    expect(out).toMatch(/dispatch: unknown. It carries every agent's lanes, dispatchTimeout and schedules/);
    expect(out).toContain("The present version is not known");
  });
});

describe("of the other functions, those are named that would be another by now", () => {
  /** A Cloudflare that keeps what is deployed to it. */
  function keeping(): void {
    stage.write("wrangler.toml", WRANGLER("wss://nats.test"));
    const bindings = version(SETTINGS)
      .resources.bindings.map((one) => `${JSON.stringify(one)},`)
      .join("");
    stage.program(
      "wrangler",
      `kept='${stage.folder}'/kept-
case "$1 $2" in
  "deployments status") [ -f "$kept$4" ] || { echo "[code: 10007]" >&2; exit 1; }
    echo "{\\"versions\\":[{\\"version_id\\":\\"$4\\",\\"percentage\\":100}]}";;
  "versions view") cat "$kept$3";;
  "secret list") echo '[{"name":"PAWL_RUN_SECRET"},{"name":"GOOGLE_APPLICATION_CREDENTIALS"}]';;
  deploy*) for one; do case "$before" in --name) name=$one;; --var) var=\${one#PAWL_DEPLOYED:};; esac; before=$one; done
    case "$*" in *--dry-run*) ;; *) printf '{"resources":{"bindings":[%s{"name":"PAWL_DEPLOYED","type":"plain_text","text":"%s"}]}}' '${bindings}' "$var" > "$kept$name";; esac;;
esac`,
    );
  }

  test("by a file that agents share, and by a check that no JSON Schema shows", () => {
    const agents = tempAgents();
    mkdirSync(join(agents, "lib"));
    const write = (file: string, text: string) => writeFileSync(join(agents, file), text);
    const agent = (input: string, text: string, imports = "") =>
      `import * as z from "zod";
import { defineAgent } from "${SHARED}/agent.ts";
${imports}
export default defineAgent({ ${input} run: () => ${text} });\n`;
    const word = `import { word } from "./lib/words.ts";`;
    const checked = (most: number) =>
      agent(`input: z.string().refine((text) => text.length < ${most}),`, "1");
    write("lib/words.ts", 'export const word = "one";\n');
    write("first.ts", agent("", "word", word));
    write("second.ts", agent("", "word", word));
    write("strict.ts", checked(7));
    keeping();
    const run = (...args: string[]) => {
      const { code, out, err } = stage.deploy([...args, "--no-ensure"], { PAWL_AGENTS_DIR: agents });
      expect([code, err]).toEqual([0, ""]);
      return out;
    };
    const along = (name: string) => {
      const { along: all } = JSON.parse(run(name, "--dry-run", "--json")) as {
        along: { function: string; is: string; why: string[] }[];
      };
      return Object.fromEntries(
        all.map(({ function: one, is, why }) => [
          one,
          [is, ...why.map((line) => line.replace(/:.*/, ""))].join(" "),
        ]),
      );
    };
    run("--all");
    const all = {
      api: "up to date",
      dispatch: "up to date",
      reconcile: "up to date",
      second: "up to date",
      strict: "up to date",
    };
    expect(along("first")).toEqual(all);
    write("lib/words.ts", 'export const word = "two";\n');
    expect(along("first")).toEqual({ ...all, second: "outdated code" });
    write("strict.ts", checked(8));
    expect(along("first")).toEqual({
      ...all,
      second: "outdated code",
      api: "outdated code",
      strict: "outdated code",
    });
    // One that can't be built is its author's to mend, and keeps no other from being deployed.
    write("second.ts", agent("", "word", `import { word } from "./lib/nothing.ts";`));
    const unknown = expect.stringMatching(/^unknown /);
    const broken = { api: unknown, dispatch: unknown, reconcile: unknown, second: unknown };
    expect(along("first")).toEqual({ ...broken, strict: "outdated code" });
  });
});
