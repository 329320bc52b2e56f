import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startNats } from "../../infra/local/nats-server.ts";
import { type Bench, type Figure, NotHere } from "../bench.ts";
import { stopwatch, unlessStopped } from "../rounds.ts";
import { agentsFolder, pawlRun } from "./takeover.ts";

const SECONDS = 30;
/** Until it has started: modules, queues, the first sweep. */
const SETTLE = 5_000;

const IDLER = (agentModule: string) => `import { defineAgent } from ${JSON.stringify(agentModule)};
export default defineAgent({ run: () => null });
`;

/** Of all its threads, in milliseconds. */
function cpuOf(pid: number): number {
  const nanos = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}

export const idleBenches = {
  idle: {
    what: `a \`pawl run\` of one agent with nothing to do, over ${SECONDS} s`,
    floor: "a core",
    required: "<= 0.5 % of a core",
    run: async (stage): Promise<Figure[]> => {
      if (process.platform !== "linux")
        throw new NotHere("How busy a process is, is read from Linux's /proc");
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
      stage.tell("nothing is done");
      const took = stopwatch();
      const [cpu, before] = [cpuOf(runner.pid), await asked()];
      await unlessStopped(stage.stop, sleep(stage.size(SECONDS * 1_000, 500)));
      const [ms, used, sent] = [took().ms, cpuOf(runner.pid) - cpu, (await asked()) - before];
      const [share, requests] = [(100 * used) / ms, (60_000 * sent) / ms];
      return [
        { what: "an idle runner's share of a core", unit: "%", pawl: [share], bound: { most: 0.5 } },
        { what: "an idle runner's messages to the server", unit: "/min", pawl: [requests] },
      ];
    },
  },
} satisfies Record<string, Bench>;
