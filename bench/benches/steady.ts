import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { Bench, Figure, Stage } from "../bench.ts";
import { loadTasks } from "../load.ts";
import { AGENT, enqueue, noop, openPawl, tellingAcks } from "../pawl.ts";
import { each, interleaved, rate, timed, unlessStopped } from "../rounds.ts";

const LANES = 16;
const PART = 1_000;
const PAGE = 50;
/** List pages and sweeps of a round: one alone is too short to tell. */
const LOOKS = 10;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapMb(): number {
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

/** One runner all the time; its tasks are submitted and handled a part at a time, each part timed. */
async function parts(stage: Stage, tasks: number): Promise<{ rates: number[]; heap: number[] }> {
  await using deps = await openPawl({ PAWL_STORE_BYTES: "-1" });
  const part = Math.min(PART, stage.size(PART, 50));
  let all: PromiseWithResolvers<void> | undefined;
  let left = 0;
  const bus = tellingAcks(deps.bus, () => {
    if (--left === 0) all?.resolve();
  });
  await enqueue(deps, 0, LANES);
  const stop = new AbortController();
  const agent = noop(LANES);
  const served = serve({ ...deps, bus }, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  const [rates, heap]: [number[], number[]] = [[], []];
  for (let done = 0; done < tasks; done += part) {
    stage.tell(`${done} of ${tasks} tasks handled`);
    all = Promise.withResolvers<void>();
    left = part;
    const ms = await timed(async () => {
      const one = () => submit(deps, { agent: AGENT, lanes: LANES, input: { text: "hello" } });
      await each(part, LANES, one);
      await unlessStopped(stage.stop, (all as PromiseWithResolvers<void>).promise);
    });
    rates.push(rate(part, ms));
    heap.push(heapMb());
  }
  stop.abort();
  await served;
  return { rates, heap };
}

async function loaded(count: number): Promise<Wired> {
  const deps = await openPawl({ PAWL_STORE_BYTES: "-1" });
  const queue = { namespace: deps.settings.namespace, agent: AGENT, lane: 0, generation: 1 };
  await loadTasks(deps, queue, { count, at: Date.now() - 120_000 });
  return deps;
}

async function looks(stage: Stage, few: number, many: number): Promise<Figure[]> {
  await using small = await loaded(few);
  stage.tell(`${many} documents are loaded`);
  await using large = await unlessStopped(stage.stop, loaded(many));
  const list = (deps: Wired) => () => timed(() => each(LOOKS, 1, () => deps.store.list({}, PAGE)));
  const sweep = (deps: Wired) => () => timed(() => each(LOOKS, 1, () => dispatchDue(deps, AGENT)));
  const measured = await interleaved(stage, {
    listFew: list(small),
    listMany: list(large),
    sweepFew: sweep(small),
    sweepMany: sweep(large),
  });
  const figure = (what: string, one: string): Figure => ({
    what: `${what}, ${many.toLocaleString("en")} documents`,
    unit: "ms",
    pawl: (measured[`${one}Many`] ?? []).map((ms) => ms / LOOKS),
    against: {
      name: `${few.toLocaleString("en")} documents`,
      values: (measured[`${one}Few`] ?? []).map((ms) => ms / LOOKS),
    },
    required: { most: 1.5 },
  });
  return [figure(`a list page of ${PAGE}`, "list"), figure("a sweep with nothing due", "sweep")];
}

/** After the first thousand tasks, and at the end: as many parts of each as there are rounds. */
async function afterMany(stage: Stage): Promise<Figure[]> {
  const tasks = stage.size(stage.isLarge ? 100_000 : 15_000, 50 * (2 * stage.rounds + 1));
  const { rates, heap } = await parts(stage, tasks);
  const early = <T>(all: readonly T[]) => all.slice(1, 1 + stage.rounds);
  const late = <T>(all: readonly T[]) => all.slice(-stage.rounds);
  const said = `after ${tasks.toLocaleString("en")} tasks`;
  return [
    {
      what: `tasks submitted and handled, ${LANES} lanes, ${said}`,
      unit: "/s",
      pawl: late(rates),
      against: { name: "after the first 1,000", values: early(rates) },
      required: { least: 0.9 },
    },
    {
      what: `heap of runner and submitter, ${said}`,
      unit: "MB",
      pawl: late(heap),
      against: { name: "after the first 1,000", values: early(heap) },
      required: { most: 1.1 },
    },
  ];
}

export const steadyBenches = {
  steady: {
    what: "a runner after 15,000 tasks (with `--large` 100,000); a list page and a sweep with 100,000 documents in NATS KV (with `--large` 1,000,000)",
    floor: "the same runner after 1,000 tasks; 10,000 documents",
    required: ">= 0.9 × the speed, <= 1.1 × the heap; <= 1.5 ×",
    run: async (stage): Promise<Figure[]> => [
      ...(await afterMany(stage)),
      ...(await looks(
        stage,
        stage.size(10_000, 200),
        stage.size(stage.isLarge ? 1_000_000 : 100_000, 1_000),
      )),
    ],
  },
} satisfies Record<string, Bench>;
