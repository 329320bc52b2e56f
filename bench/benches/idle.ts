import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startNats } from "../../infra/local/nats-server.ts";
import { type Bench, type Figure, NotHere } from "../bench.ts";
import { unlessStopped } from "../rounds.ts";
import { agentsFolder, pawlRun } from "./takeover.ts";

const SECONDS = 30;
/** Until it has started: modules, queues, the first sweep. */
const SETTLE = 5_000;

const IDLER = (agentModule: string) => `import { defineAgent } from ${JSON.stringify(agentModule)};
export default defineAgent({ run: () => null });
`;

/** Of user and system, in milliseconds. */
function cpuOf(pid: number, ticks: number): number {
  const after = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (1_000 * (Number(after[11]) + Number(after[12]))) / ticks;
}

export const idleBenches = {
  idle: {
    what: `a \`pawl run\` of one agent with nothing to do, over ${SECONDS} s`,
    floor: "a core",
    required: "<= 0.5 % of a core",
    run: async (stage): Promise<Figure[]> => {
      if (process.platform !== "linux")
        throw new NotHere("How busy a process is, is read from Linux's /proc");
      const ticks = Number(execFileSync("getconf", ["CLK_TCK"]).toString());
      await using stack = new AsyncDisposableStack();
      const nats = stack.use(await startNats());
      const asked = async () => {
        const answer = await fetch(`${nats.monitorUrl}/varz`);
        return ((await answer.json()) as { in_msgs: number }).in_msgs;
      };
      const folder = agentsFolder("idler", IDLER(new URL("../../shared/agent.ts", import.meta.url).pathname));
      const env = { NATS_URL: nats.url, PAWL_STORE: "nats-kv", PAWL_AGENTS_DIR: folder };
      const runner = await pawlRun("idler", env);
      stack.defer(() => runner.stop());
      await runner.says(/run\.started/);
      await unlessStopped(stage.stop, sleep(SETTLE));
      const [shares, requests]: [number[], number[]] = [[], []];
      const ms = stage.size(SECONDS * 1_000, 500) / stage.rounds;
      for (let round = 1; round <= stage.rounds; round++) {
        stage.tell(`${Math.round(ms / 1_000)} s, ${round} of ${stage.rounds}`);
        const [cpu, before, begun] = [cpuOf(runner.pid, ticks), await asked(), performance.now()];
        await unlessStopped(stage.stop, sleep(ms));
        const took = performance.now() - begun;
        shares.push((100 * (cpuOf(runner.pid, ticks) - cpu)) / took);
        requests.push((60_000 * ((await asked()) - before)) / took);
      }
      return [
        { what: "an idle runner's share of a core", unit: "%", pawl: shares, bound: { most: 0.5 } },
        { what: "an idle runner's messages to the server", unit: "/min", pawl: requests },
      ];
    },
  },
} satisfies Record<string, Bench>;
