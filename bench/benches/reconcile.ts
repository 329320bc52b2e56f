import { fileURLToPath } from "node:url";
import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { startNats } from "../../infra/local/nats-server.ts";
import { startServer } from "../../infra/local/process.ts";
import type { Bench, Figure } from "../bench.ts";
import { loadTasks } from "../load.ts";
import { interleaved, unlessStopped } from "../rounds.ts";

const QUEUE = { namespace: "bench", agent: "echo", lane: 0, generation: 1 };
/** What ended less than a minute ago the next report looks at once more. */
const AGO = 120_000;
const CHILD = fileURLToPath(new URL("reconcile-child.ts", import.meta.url));

interface Took {
  readonly ms: number;
  readonly documents: number;
  readonly mb: number;
}

/** On a server and documents of its own: the second report of the same ones has little to do. */
async function took(what: "read" | "report", count: number, stop: AbortSignal): Promise<Took> {
  await using nats = await startNats();
  const env = { NATS_URL: nats.url, PAWL_STORE: "nats-kv", PAWL_NAMESPACE: QUEUE.namespace };
  {
    await using deps = await wire(configFrom(env), () => {});
    await unlessStopped(stop, loadTasks(deps, QUEUE, { count, at: Date.now() - AGO }));
  }
  const { PATH = "" } = process.env;
  const child = await startServer(process.execPath, [CHILD, what], { PATH, ...env });
  try {
    const answer = JSON.parse(await unlessStopped(stop, child.says(/^\{"ms"/))) as Took;
    if (answer.documents < count) throw new Error(`${answer.documents} of ${count} documents were read`);
    return answer;
  } finally {
    await child.stop();
  }
}

export const reconcileBenches = {
  reconcile: {
    what: "the first report over 10,000 and 100,000 sequences with their documents in NATS KV (with `--large` 1,000,000)",
    floor: "reading the documents alone; a report over 10,000",
    required: "<= 1.3 × the reading, <= 1.3 × a sequence, <= 256 MB above rest with Node's own heap",
    run: async (stage): Promise<Figure[]> => {
      const sizes = [10_000, 100_000, ...(stage.isLarge ? [1_000_000] : [])].map((size) =>
        stage.size(size, 500),
      );
      const figures: Figure[] = [];
      const perSequence: number[][] = [];
      for (const count of sizes) {
        const { read = [], report = [] } = await interleaved(
          { ...stage, tell: (doing) => stage.tell(`${count} sequences, ${doing}`) },
          { read: () => took("read", count, stage.stop), report: () => took("report", count, stage.stop) },
          { isWarmedUp: true },
        );
        const ms = report.map((one) => one.ms);
        const against = { name: "reading the documents", values: read.map((one) => one.ms) };
        const said = count.toLocaleString("en");
        figures.push(
          { what: `first report over ${said}`, unit: "ms", pawl: ms, against, required: { most: 1.3 } },
          {
            what: `its memory above rest, ${said}`,
            unit: "MB",
            pawl: report.map(({ mb }) => mb),
            bound: { most: 256 },
          },
        );
        perSequence.push(ms.map((one) => (1_000 * one) / count));
      }
      const [small = [], ...larger] = perSequence;
      for (const [i, pawl] of larger.entries()) {
        const what = `a report, a sequence of ${sizes[i + 1]?.toLocaleString("en")}`;
        const against = { name: `of ${sizes[0]?.toLocaleString("en")}`, values: small };
        figures.push({ what, unit: "µs", pawl, against, required: { most: 1.3 } });
      }
      return figures;
    },
  },
} satisfies Record<string, Bench>;
