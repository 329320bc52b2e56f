/**
 * What seals cost: the CPU of whole tasks (submit, claim, three steps, complete) on NATS KV in one process, without seals,
 * and the CPU that sealing and checking adds to it. That is less than two runs of the same tasks differ by, so it is not
 * taken from their difference: what a run asked of its store is asked again many times, with and without seals, of a
 * store that answers at once what was answered then.
 *
 *   npm run bench:seal -- 2000      so many tasks
 */
import { randomBytes } from "node:crypto";
import { configFrom } from "../functions/wiring/config.ts";
import { openKv } from "../functions/wiring/connect.ts";
import { wire } from "../functions/wiring/wire.node.ts";
import { startNats } from "../infra/local/nats-server.ts";
import { defineAgent } from "../shared/agent.ts";
import { submit } from "../shared/dispatch/submit.ts";
import type { Sealer } from "../shared/ports/sealer.ts";
import type { TaskStore } from "../shared/ports/store.ts";
import { serve } from "../shared/runner/serve.ts";
import { sealed } from "../shared/seal/sealed.ts";
import { sealerOf } from "../shared/seal/sealer.ts";

const AGENT = "echo";
const ROUND = 100;
const WARM_UP = 3;
const REPEATS = 30;

const agent = defineAgent({
  run: async ({ step }) => {
    for (const name of ["a", "b", "c"]) await step(name, () => ({ said: "hello" }));
    return "hello";
  },
});

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

const rounds = Math.max(1, Number(process.argv[2] ?? 2_000) / ROUND);
await using nats = await startNats();
const config = configFrom({ NATS_URL: nats.url, PAWL_STORE: "nats-kv", PAWL_NAMESPACE: "bench" });
await using deps = await wire(config, () => {});
const plain = await openKv(deps.nc, config.settings, deps.log);
await deps.bus.ensure({ namespace: "bench", agent: AGENT, lane: 0, generation: 1 });

const whole: number[] = [];
for (let round = 0; round < WARM_UP + rounds; round++) whole.push(await cpuOf(() => work(plain)));
const base = median(whole.slice(WARM_UP)) / ROUND;
console.log(`a task without seals: ${base.toFixed(0)} µs of CPU (median of ${rounds} rounds of ${ROUND})`);
for (const [name, sealer] of Object.entries(sealers)) {
  const calls = await recorded(sealer);
  const more = await added(sealer, calls);
  const share = (100 * more) / (base + more);
  console.log(
    `${name}: ${more.toFixed(0)} µs, ${share.toFixed(1)} % of a task's CPU (${calls.length / ROUND} calls of the store)`,
  );
}

/** A round of tasks from submit to completion. */
async function work(store: TaskStore, sealer = deps.sealer): Promise<void> {
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
async function recorded(sealer: Sealer): Promise<readonly Call[]> {
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
  await work(above, sealer);
  return calls;
}

/** Microseconds of CPU that seals add to each task of these calls. */
async function added(sealer: Sealer, calls: readonly Call[]): Promise<number> {
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
  for (let i = 0; i < REPEATS; i++) more.push((await cpuOf(withSeals)) - (await cpuOf(without)));
  return median(more) / ROUND;
}

function replaced(store: TaskStore, by: (name: Call["name"], ask: Ask) => Ask): TaskStore {
  const others = SEALED.map((name) => [name, by(name, store[name] as Ask)]);
  return { ...store, ...(Object.fromEntries(others) as Partial<TaskStore>) };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
