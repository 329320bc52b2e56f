import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { startNats } from "../../infra/local/nats-server.ts";
import { type ServerProcess, startServer } from "../../infra/local/process.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Bench, Figure, Stage } from "../bench.ts";
import { interleaved } from "../rounds.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const ACK_WAIT = 5;

/** Says that it began, and goes on until it is told to stop. */
const HOLDER = `import { defineAgent } from ${JSON.stringify(join(ROOT, "shared/agent.ts"))};
export default defineAgent({
  run: ({ signal }) => {
    console.error("HANDLER BEGINS");
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  },
});
`;

/** A folder with the agent \`holder\`. */
export function agentsFolder(name: string, source: string): string {
  const folder = mkdtempSync(join(tmpdir(), "agents-"));
  writeFileSync(join(folder, `${name}.ts`), source);
  return folder;
}

/** A real \`pawl run\`, as a service starts it. */
export function pawlRun(agent: string, env: Readonly<Record<string, string>>): Promise<ServerProcess> {
  const args = [join(ROOT, "infra/cli/main.ts"), "run", agent, "--json"];
  const { PATH = "", HOME = "", TMPDIR = tmpdir() } = process.env;
  return startServer(process.execPath, args, { PATH, HOME, TMPDIR, ...env });
}

/** Two runners, one of which has the task: how long after this signal to it the other's handler begins. */
async function takeover(signal: "SIGKILL" | "SIGTERM"): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const env = {
    NATS_URL: nats.url,
    PAWL_STORE: "nats-kv",
    PAWL_ACK_WAIT: `${ACK_WAIT}s`,
    PAWL_AGENTS_DIR: agentsFolder("holder", HOLDER),
  };
  const deps = stack.use(await wire(configFrom(env), () => {}));
  const start = async () => {
    const runner = await pawlRun("holder", env);
    stack.defer(() => runner.stop());
    await runner.says(/run\.started/);
    return runner;
  };
  const first = await start();
  await submit(deps, { agent: "holder", lanes: 1, input: {} });
  await first.says(/HANDLER BEGINS/);
  const second = await start();
  // Its pull waits at the server.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const begun = performance.now();
  process.kill(first.pid, signal);
  await second.says(/HANDLER BEGINS/);
  return performance.now() - begun;
}

async function times(stage: Stage, signal: "SIGKILL" | "SIGTERM"): Promise<readonly number[]> {
  const { pawl = [] } = await interleaved(stage, { pawl: () => takeover(signal) }, { isWarmedUp: true });
  return pawl;
}

export const takeoverBenches = {
  kill: {
    what: `kill -9 of a \`pawl run\` with a task → another one's handler begins, ack_wait ${ACK_WAIT} s`,
    floor: "ack_wait itself",
    required: "<= 1.5 × ack_wait + 2 s",
    run: async (stage): Promise<Figure[]> => {
      const bound = { most: 1_000 * (1.5 * ACK_WAIT + 2) };
      return [{ what: "kill -9 → resumed", unit: "ms", pawl: await times(stage, "SIGKILL"), bound }];
    },
  },
  stop: {
    what: "SIGTERM to a `pawl run` with a task → another one's handler begins",
    floor: "1 s",
    required: "<= 1 s",
    run: async (stage): Promise<Figure[]> => [
      { what: "SIGTERM → resumed", unit: "ms", pawl: await times(stage, "SIGTERM"), bound: { most: 1_000 } },
    ],
  },
} satisfies Record<string, Bench>;
