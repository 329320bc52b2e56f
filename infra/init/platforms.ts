import type { Choice, Platform } from "./choice.ts";
import type { Pins } from "./pins.ts";

export function wranglerToml({ name, store }: Choice, { compatibility: { date, flags } }: Pins): string {
  return `# Settings of all functions on Cloudflare Workers. \`pawl deploy <function>\` gives each its name, bundle and cron.
# Secrets are not here: docs/deploy.md says which ones there are and how to set them.
name = "${name}"
compatibility_date = "${date}"
# Without the first a Worker may not call another one of the same account by its address: the API could wake nobody.
# By the second a wait inside a step is recognised across its awaits.
compatibility_flags = ${JSON.stringify(flags).replaceAll(",", ", ")}

[observability]
enabled = true

# Time stands still for a Worker while it computes. More of it than a lease (two thirds of PAWL_ACK_WAIT) would not be noticed.
[limits]
cpu_ms = 20_000

[vars]
NATS_URL = "wss://nats.example.com"
PAWL_STORE = "${store}"
# Wakes functions at once, and not only every minute: the address of your Workers, with your account's subdomain.
# PAWL_WAKE_URL = "https://${name}-{agent}.your-subdomain.workers.dev/run"
${store === "firestore" ? 'GOOGLE_CLOUD_PROJECT = "your-project"\n' : ""}`;
}

export function gcpEnv({ store }: Choice): string {
  return `# Settings of all functions on Google Cloud Run, as NAME=value. \`pawl deploy <function> --target gcp\` reads them.
# Secrets are not here: docs/deploy.md says which ones there are and how to set them.
GOOGLE_CLOUD_PROJECT=your-project
REGION=europe-west1
NATS_URL=tls://nats.example.com:4222
PAWL_STORE=${store}
# Wakes functions at once, and not only every minute: the address of your functions, once the first is deployed.
# PAWL_WAKE_URL=https://pawl-{agent}-0123456789.europe-west1.run.app/run
# Pawl's own variables that come from Secret Manager, beside PAWL_RUN_SECRET. Agents declare theirs themselves.
SECRETS=NATS_CREDS
`;
}

const LOGIN: Readonly<
  Record<
    Platform,
    { readonly needs: string; readonly permissions: string; readonly steps: string; readonly env: string }
  >
> = {
  cloudflare: {
    needs: "secrets CLOUDFLARE_API_TOKEN and NATS_CREDS, variables CLOUDFLARE_ACCOUNT_ID and NATS_URL",
    permissions: "",
    steps: "",
    env: `      CLOUDFLARE_API_TOKEN: \${{ secrets.CLOUDFLARE_API_TOKEN }}
      CLOUDFLARE_ACCOUNT_ID: \${{ vars.CLOUDFLARE_ACCOUNT_ID }}
`,
  },
  gcp: {
    needs:
      "secret NATS_CREDS, variables NATS_URL, WORKLOAD_IDENTITY_PROVIDER and DEPLOY_ACCOUNT (github.com/google-github-actions/auth)",
    permissions: "    permissions: { contents: read, id-token: write }\n",
    steps: `      - uses: google-github-actions/auth@v3
        with:
          workload_identity_provider: \${{ vars.WORKLOAD_IDENTITY_PROVIDER }}
          service_account: \${{ vars.DEPLOY_ACCOUNT }}
      - uses: google-github-actions/setup-gcloud@v3
`,
    env: "",
  },
};

/** Agents first, the API last, because it lets new tasks in. A deploy that finds something missing changes nothing. */
export function workflow(platform: Platform): string {
  const { needs, permissions, steps, env } = LOGIN[platform];
  const target = platform === "gcp" ? " --target gcp" : "";
  const deploys = ["hello", "dispatch", "reconcile", "api"].map(
    (one) => `      - run: npx pawl deploy ${one}${target}\n`,
  );
  return `# Tests every push and pull request. Deploys main, once the repository's variable PAWL_DEPLOY is true. That needs:
# ${needs}.
# NATS_CREDS is a credentials file of the operator's: it makes sure of the agents' streams.
name: pawl
on: [push, pull_request]
permissions: { contents: read }
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with: { node-version: 24, cache: npm }
      - run: npm ci
      - run: npm test
  deploy:
    needs: test
    if: github.ref == 'refs/heads/main' && github.event_name == 'push' && vars.PAWL_DEPLOY == 'true'
    runs-on: ubuntu-latest
    concurrency: deploy
${permissions}    env:
${env}      NATS_URL: \${{ vars.NATS_URL }}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with: { node-version: 24, cache: npm }
${steps}      - run: npm ci
      - run: |
          printf '%s' "$CREDS" > "$RUNNER_TEMP/nats.creds"
          echo "NATS_CREDS=$RUNNER_TEMP/nats.creds" >> "$GITHUB_ENV"
        env: { CREDS: "\${{ secrets.NATS_CREDS }}" }
      # One command a function: add your agents here, before dispatch. Or all at once, checked before anything is changed:
      # npx pawl deploy --all${target}
${deploys.join("")}`;
}
