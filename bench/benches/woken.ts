import type { Bench, Figure, Stage } from "../bench.ts";
import type { Start, World } from "../floors/woken-world.ts";
import { interleaved, timed } from "../rounds.ts";
import { median } from "../spread.ts";

/** Warm calls of a round: their median is the round's. */
const CALLS = 10;

async function call(url: string, secret: string, completed: 0 | 1): Promise<number> {
  return timed(async () => {
    const headers = { authorization: `Bearer ${secret}` };
    const text = await (await fetch(`${url}/run`, { method: "POST", headers })).text();
    if (text.includes('"completed":1') !== (completed === 1)) throw new Error(`It answered ${text}`);
  });
}

interface Times {
  readonly cold: number;
  readonly task: number;
  readonly nothing: number;
}

/** A function from its start on: its first task, then tasks and calls with nothing to do. */
async function wake(world: World, start: Start, side: "bare" | "pawl", calls: number): Promise<Times> {
  await using started = await start();
  await world.enqueue(side);
  const cold = await call(started.url, world.secret, 1);
  const [tasks, nothings]: [number[], number[]] = [[], []];
  for (let i = 0; i < calls; i++) {
    await world.enqueue(side);
    tasks.push(await call(started.url, world.secret, 1));
    nothings.push(await call(started.url, world.secret, 0));
  }
  return { cold, task: median(tasks), nothing: median(nothings) };
}

const FIGURES = {
  nothing: { what: "woken with nothing to do", name: "connect, one pull" },
  task: { what: "woken with one task", name: "connect, pull, two writes, ack" },
  cold: { what: "first task from cold", name: "the same from cold" },
} as const;

async function run(stage: Stage): Promise<Figure[]> {
  // Loaded only here: the bundler takes a second.
  const { openWorld } = await import("../floors/woken-world.ts");
  await using world = await openWorld();
  const figures: Figure[] = [];
  for (const [runtime, { bare, pawl }] of Object.entries(world.starts)) {
    const tell = (doing: string) => stage.tell(`${runtime}, ${doing}`);
    const calls = stage.size(CALLS, 2);
    const measured = await interleaved(
      { ...stage, tell },
      { bare: () => wake(world, bare, "bare", calls), pawl: () => wake(world, pawl, "pawl", calls) },
      { isWarmedUp: true },
    );
    for (const key of ["nothing", "task", "cold"] as const) {
      const of = (side: string) => (measured[side] ?? []).map((times) => times[key]);
      figures.push({
        what: `${FIGURES[key].what}, ${runtime}`,
        unit: "ms",
        pawl: of("pawl"),
        against: { name: FIGURES[key].name, values: of("bare") },
        required: { most: 1.5 },
      });
    }
  }
  return figures;
}

export const wokenBenches = {
  woken: {
    what: "POST /run of a function in workerd and in Google's framework, on Firestore's emulator: nothing to do, one task, the first task from cold",
    floor:
      "a bare function in the same runtime: connect, one pull; two guarded writes by REST, confirmed ack",
    required: "<= 1.5 ×",
    run,
  },
} satisfies Record<string, Bench>;
