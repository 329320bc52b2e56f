import type { Choice } from "./choice.ts";
import { LIBRARIES, PAWL, type Pins } from "./pins.ts";
import { gcpEnv, workflow, wranglerToml } from "./platforms.ts";

/** A new project's files, by path. `pawl`: where the package comes from, a version or a file. */
export function filesOf(choice: Choice, pins: Pins, pawl = PAWL): Readonly<Record<string, string>> {
  const { platform, store } = choice;
  return {
    "package.json": `${JSON.stringify(manifestOf(choice, pins, pawl), null, 2)}\n`,
    "tsconfig.json": TSCONFIG,
    "agents/hello.ts": AGENT,
    "agents/hello.test.ts": TEST,
    ...(platform === "cloudflare"
      ? { "wrangler.toml": wranglerToml(choice, pins) }
      : { "gcp.env": gcpEnv(choice) }),
    ...(store === "firestore" && { "firebase.json": FIREBASE }),
    ".github/workflows/pawl.yml": workflow(platform),
    ".gitignore": "node_modules/\n/dist/\n/.pawl/\n.wrangler/\n.dev.vars*\n*.log\n",
    "README.md": readme(choice),
  };
}

export interface Manifest {
  readonly [field: string]: unknown;
}

function manifestOf({ name, platform }: Choice, { development, overrides }: Pins, pawl: string): Manifest {
  const needed = Object.entries(development).filter(
    ([one]) => one !== "wrangler" || platform === "cloudflare",
  );
  const target = platform === "gcp" ? " --target gcp" : "";
  return {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: {
      first: `pawl dev --submit hello='{"name": "Ada"}'`,
      dev: "pawl dev",
      test: "tsc && vitest run",
      deploy: `pawl deploy --all${target}`,
    },
    dependencies: { pawl, ...LIBRARIES },
    devDependencies: Object.fromEntries(needed),
    // Of those that npm would ask about: none of them is needed, so none is run.
    allowScripts: { esbuild: false, workerd: false, ...(platform === "cloudflare" && { sharp: false }) },
    ...(overrides && { overrides }),
  };
}

const TSCONFIG = `${JSON.stringify(
  {
    compilerOptions: {
      target: "es2023",
      lib: ["es2024", "esnext.disposable"],
      module: "nodenext",
      types: ["node"],
      strict: true,
      noUncheckedIndexedAccess: true,
      // What Node and the bundler only have to strip.
      erasableSyntaxOnly: true,
      verbatimModuleSyntax: true,
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      noEmit: true,
    },
    include: ["agents"],
  },
  null,
  2,
)}\n`;

const AGENT = `import { defineAgent } from "pawl";
import * as z from "zod";

/** Greets somebody. The file's name is the agent's name. */
export default defineAgent({
  input: z.object({ name: z.string() }),
  limits: { timeout: "5m", attempts: 3 },
  async run({ input, step }) {
    const greeting = await step("greet", () => \`Hello, \${input.name}!\`);
    return { greeting };
  },
});
`;

const TEST = `import { everyCrash, runAgent } from "pawl/testing";
import { expect, test } from "vitest";
import hello from "./hello.ts";

test("greets", async () => {
  const run = await runAgent(hello, { name: "Ada" });
  expect(run).toMatchObject({ state: "completed", result: { greeting: "Hello, Ada!" } });
});

test("whatever crashes, it ends the same", async () => {
  for (const { crash, run } of await everyCrash(hello, { name: "Ada" }))
    expect(run, crash).toMatchObject({ state: "completed", result: { greeting: "Hello, Ada!" } });
});
`;

const FIREBASE = `${JSON.stringify({ firestore: { indexes: "node_modules/pawl/infra/firestore.indexes.json" } }, null, 2)}\n`;

function readme({ name, platform, store }: Choice): string {
  const settings = platform === "cloudflare" ? "wrangler.toml" : "gcp.env";
  const target = platform === "gcp" ? " --target gcp" : "";
  const indexes =
    store === "firestore"
      ? "\nFirestore's indexes, once: `npx firebase-tools deploy --only firestore:indexes --project your-project`\n"
      : "";
  return `# ${name}

Agents that run on [Pawl](node_modules/pawl/README.md): one result per task, whatever crashes.

\`\`\`sh
npm install
npm run first    # servers and every function on this machine, and a first task
npm test         # types, and agents in memory, through a crash at every point
npx pawl new invoice    # another agent, with its test
\`\`\`

Deploy: write your own values into \`${settings}\`, then

\`\`\`sh
npx pawl deploy --all${target} --dry-run    # what it would do, and what is missing
npm run deploy
\`\`\`
${indexes}
\`.github/workflows/pawl.yml\` tests every push, and deploys \`main\` once the repository's variable \`PAWL_DEPLOY\` is \`true\`; what else
it needs stands at its top.

Upgrade Pawl with \`npm update pawl\`. Stored tasks and journals of the version before stay readable.

The guide: \`node_modules/pawl/docs/\`: start.md, author.md, deploy.md, operator.md.
`;
}
