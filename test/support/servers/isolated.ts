import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { inject } from "vitest";
import { configFrom } from "../../../functions/wiring/config.ts";
import { connectNats, type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { type KnownAgent, knownAgents, loadAgent } from "../../../infra/agents.ts";
import type { Format } from "../../../infra/creds/write.ts";
import { ensureAgent } from "../../../infra/ensure.ts";
import { type LocalNats, startNats } from "../../../infra/local/nats-server.ts";
import type { Agent } from "../../../shared/agent.ts";
import { familyOf } from "../../../shared/definition.ts";

const run = promisify(execFile);

/** A server with the identities that `pawl creds` wrote, and whoever connects as one of them. */
export interface Isolated extends AsyncDisposable {
  readonly nats: LocalNats;
  readonly folder: string;
  readonly known: readonly KnownAgent[];
  /** What `pawl creds` said. */
  readonly said: { readonly written: readonly string[]; readonly reused: readonly string[] };
  env(identity: string): Promise<Record<string, string>>;
  /** One of Pawl's own functions, or an agent's, wired as it is deployed. */
  as(identity: string): Promise<Wired>;
  agent(name: string): Promise<Agent>;
  /** A plain connection of an identity, for whoever has its credentials and does not use Pawl. `inbox`: instead of its own. */
  raw(identity: string, inbox?: string): Promise<NatsConnection>;
  /** Runs the command again. */
  creds(
    ...more: readonly string[]
  ): Promise<{ readonly written: readonly string[]; readonly reused: readonly string[] }>;
}

/** Streams and buckets are there, made by the operator. `agents`: a folder with their files. */
export async function isolated(
  agents: string,
  format: Format,
  more: Readonly<Record<string, string>> = {},
  edit: (config: string) => string = (config) => config,
): Promise<Isolated> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "pawl-creds-"));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const creds = async (...args: readonly string[]) => {
    const main = ["infra/cli/main.ts", "creds", "--json", "--format", format, "--out", folder, ...args];
    const { stdout } = await run(process.execPath, main, {
      env: { ...process.env, PAWL_AGENTS_DIR: agents, ...more },
    });
    return JSON.parse(stdout) as Isolated["said"];
  };
  const said = await creds();
  // What is opened later is closed with the rest.
  let stack = started;
  const config = edit(await readFile(join(folder, "nats.conf"), "utf8"));
  const nats = started.use(await startNats({ binary: inject("natsServer"), config }));
  const known = await knownAgents(agents);
  const env = async (identity: string) => {
    const text = await readFile(join(folder, `${identity}.env`), "utf8");
    const given = Object.fromEntries(
      text
        .trim()
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    ) as Record<string, string>;
    return { NATS_URL: nats.url, PAWL_STORE: "nats-kv", ...given, ...more };
  };
  const whoIs = (identity: string) => {
    const isAgent = known.some(({ name }) => name === identity);
    return { name: identity, ...(isAgent && { reaches: familyOf(identity, known) }) };
  };
  const as = async (identity: string) =>
    stack.use(await wire(configFrom(await env(identity)), () => {}, whoIs(identity)));
  const raw = async (identity: string, inbox?: string) => {
    const config = configFrom(await env(identity));
    const nc =
      inbox === undefined
        ? await connectNats(config, whoIs(identity))
        : await connect({
            servers: nats.url,
            user: config.nats.user as string,
            pass: config.nats.password as string,
            inboxPrefix: inbox,
          });
    stack.defer(() => nc.close());
    return nc;
  };
  const operator = await as("operator");
  const { store } = configFrom(await env("operator"));
  for (const one of known) await ensureAgent(operator, store, one);
  const all = started.move();
  stack = all;
  return {
    nats,
    folder,
    known,
    said,
    env,
    as,
    raw,
    creds,
    agent: (name) => loadAgent(name, agents),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Agents of a family, and one that is no relative. */
export async function familyAgents(folder: string, shared: string): Promise<void> {
  const head = `import { defineAgent } from "${shared}/agent.ts";\n`;
  const files = {
    boss: `let tries = 0;
export default defineAgent({
  children: ["helper"],
  limits: { attempts: 3, backoff: { first: "10ms" } },
  async run({ input, step, effect, submit, approval }) {
    const first = await step("first", () => ({ n: 1 }));
    if (input.fails && tries++ === 0) throw new Error("the first try fails");
    const sent = await effect("send", { run: async (key) => ({ key }) });
    const child = await submit("helper", { text: "x".repeat(10) }, { key: "one" });
    const helped = await child.result();
    await approval("publish", { summary: "may it?" });
    return { first, sent: typeof sent.key, helped };
  },
});
`,
    helper: `export default defineAgent({ run: ({ input }) => ({ helped: input.text.length }) });\n`,
    stranger: `export default defineAgent({
  async run({ input, submit }) {
    if (!input.submits) return { secret: input.secret ?? "none" };
    const child = await submit("helper", {}, { key: "k" });
    return child.result();
  },
});
`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, `${name}.ts`), head + text);
}
