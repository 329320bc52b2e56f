import type { StoreKind } from "../../functions/wiring/config.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Agent, type AgentContext, defineAgent, type Limits } from "../../shared/agent.ts";
import { type Submission, type Submitted, submit } from "../../shared/dispatch/submit.ts";
import { type HandledCounts, serve } from "../../shared/runner/serve.ts";
import type { Settings } from "../../shared/settings/settings.ts";
import type { Task } from "../../shared/task/document.ts";
import type { Queue } from "../../shared/task/names.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { type Logged, type TestWorld, wired, world } from "./servers/stores.ts";
import { patiently } from "./time/until.ts";

export const AGENT = "tested";

export function agentOf(run: (context: AgentContext<unknown>) => unknown, limits: Limits = {}): Agent {
  return defineAgent({ limits, run });
}

/** What a handler that listens does: works until its signal aborts, then throws the reason. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** One agent on real servers, in this process: for what needs no killing. */
export interface Bench extends AsyncDisposable {
  readonly world: TestWorld;
  readonly deps: Wired & { logged: Logged[] };
  readonly queue: Queue;
  submit(input: JsonObject, more?: Partial<Submission>): Promise<Submitted>;
  drain(agent?: Agent, stop?: AbortSignal): Promise<HandledCounts>;
  task(id: string): Promise<Task>;
}

export async function bench(
  nats: LocalNats,
  store: StoreKind,
  agent: Agent,
  given: Partial<Settings> = {},
): Promise<Bench> {
  const w = world(nats, store, given);
  const deps = await wired(w.config);
  const { namespace, generation } = w.config.settings;
  const queue = { namespace, agent: AGENT, lane: 0, generation };
  await deps.bus.ensure(queue);
  const { lanes } = agent.limits;
  return {
    world: w,
    deps,
    queue,
    submit: (input, more = {}) => submit(deps, { agent: AGENT, lanes, input, ...more }),
    drain: (other = agent, stop = new AbortController().signal) =>
      serve(deps, { name: AGENT, agent: other, mode: "drain", stop }),
    task: async (id) => {
      const found = await patiently(() => deps.store.get(id));
      if (!found) throw new Error(`no task ${id}`);
      return found.task;
    },
    [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose](),
  };
}
