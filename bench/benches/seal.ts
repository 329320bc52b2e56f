import { randomBytes } from "node:crypto";
import { openKv } from "../../functions/wiring/connect.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { type Agent, defineAgent } from "../../shared/agent.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Sealer } from "../../shared/ports/sealer.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { serve } from "../../shared/runner/serve.ts";
import { sealed } from "../../shared/seal/sealed.ts";
import { sealerOf } from "../../shared/seal/sealer.ts";
import type { Bench, Figure, Stage } from "../bench.ts";
import { AGENT, openPawl } from "../pawl.ts";
import { interleaved, unlessStopped } from "../rounds.ts";
import { median } from "../spread.ts";

const ROUND = 100;
const REPEATS = 30;

const agent = defineAgent({
  run: async ({ step }) => {
    for (const name of ["a", "b", "c"]) await step(name, () => ({ said: "hello" }));
    return "hello";
  },
}) as Agent;

const key = [randomBytes(32).toString("hex")];
const sealers: Readonly<Record<string, Sealer>> = {
  "no key": sealerOf(),
  "with a key": sealerOf(key),
};
/** What a sealed store does more at. */
const SEALED = ["create", "replace", "get", "due", "getMany", "getHead", "putHead"] as const;
type Ask = (...given: unknown[]) => Promise<unknown>;
interface Call {
  readonly name: (typeof SEALED)[number];
  readonly given: readonly unknown[];
  /** Of the store below the seals. */
  answer?: unknown;
}

/**
 * The CPU of whole tasks (submit, claim, three steps, complete) in one process without seals, and what sealing and checking
 * add to it. That is less than two runs of the same tasks differ by, so it is not taken from their difference: what a
 * run asked of its store is asked again many times, with and without seals, of a store that answers at once what was
 * answered then.
 */
async function seal(stage: Stage): Promise<Figure[]> {
  await using deps = await openPawl();
  const plain = await openKv(deps.nc, deps.settings, deps.log);
  await ensureQueue(deps, queueOf(deps, { agent: AGENT, lane: 0 }), "correct");
  const { whole = [] } = await interleaved(stage, { whole: () => cpuOf(() => work(deps, plain)) });
  const base = whole.map((all) => all / ROUND);
  const figures: Figure[] = [];
  for (const [name, sealer] of Object.entries(sealers)) {
    stage.tell(name);
    const more = await unlessStopped(stage.stop, added(deps, plain, sealer, stage.size(REPEATS, 3)));
    const pawl = base.map((one) => one + more);
    const against = { name: "without seals", values: base };
    figures.push({ what: `CPU of a task of 3 steps, sealed, ${name}`, unit: "µs", pawl, against });
  }
  return figures;
}

/** A round of tasks from submit to completion. */
async function work(deps: Wired, store: TaskStore, sealer = deps.sealer): Promise<void> {
  const wired = { ...deps, store, sealer };
  for (let i = 0; i < ROUND; i++)
    await submit(wired, { agent: AGENT, lanes: 1, input: { text: "hello" }, id: crypto.randomUUID() });
  const { completed } = await serve(wired, {
    name: AGENT,
    agent,
    mode: "drain",
    stop: new AbortController().signal,
  });
  if (completed !== ROUND) throw new Error(`${completed} of ${ROUND} tasks completed`);
}

/** In microseconds. */
async function cpuOf(some: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await some();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** What a round asks of a sealed store, and what the store below answers. */
async function recorded(deps: Wired, plain: TaskStore, sealer: Sealer): Promise<readonly Call[]> {
  const calls: Call[] = [];
  const below = replaced(plain, (name, ask) => async (...given) => {
    const answer = await ask(...given);
    const call = calls.find((one) => one.name === name && !("answer" in one));
    if (call) call.answer = answer;
    return answer;
  });
  const above = replaced(sealed(below, sealer, deps.log), (name, ask) => (...given) => {
    calls.push({ name, given });
    return ask(...given);
  });
  await work(deps, above, sealer);
  return calls;
}

/** Microseconds of CPU that seals add to each task of these calls. */
async function added(deps: Wired, plain: TaskStore, sealer: Sealer, repeats: number): Promise<number> {
  const calls = await recorded(deps, plain, sealer);
  let answer: unknown;
  const below = replaced(plain, () => async () => answer);
  const ask = (store: TaskStore) => async () => {
    for (const call of calls) {
      answer = call.answer;
      await (store[call.name] as Ask)(...call.given);
    }
  };
  const [without, withSeals] = [ask(below), ask(sealed(below, sealer, deps.log))];
  const more: number[] = [];
  for (let i = 0; i < repeats; i++) more.push((await cpuOf(withSeals)) - (await cpuOf(without)));
  return median(more) / ROUND;
}

function replaced(store: TaskStore, by: (name: Call["name"], ask: Ask) => Ask): TaskStore {
  const others = SEALED.map((name) => [name, by(name, store[name] as Ask)]);
  return { ...store, ...(Object.fromEntries(others) as Partial<TaskStore>) };
}

export const sealBenches = {
  seal: {
    what: "the CPU of a task of three steps on NATS KV with its seals, without and with a key",
    floor: "the same without seals",
    required: "printed only",
    run: seal,
  },
} satisfies Record<string, Bench>;
