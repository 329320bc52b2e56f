import type { Agent } from "../agent.ts";
import { messageOf } from "../task/errors.ts";
import type { Deps } from "./deps.ts";
import { dispatchDue, queueOf } from "./dispatch.ts";
import type { Handled } from "./handle.ts";
import { type PullMode, pullLane } from "./pull.ts";
import type { HandledAs } from "./settle.ts";

/** How many messages ended in which way. */
export type Tally = Partial<Record<HandledAs, number>>;

/** Due tasks are looked for this often, and when a retry of this process's own comes due. */
const SWEEP_EVERY = 60_000;

/** All lanes of one agent: queues made sure of, due tasks dispatched, messages handled. */
export async function serve(
  name: string,
  agent: Agent,
  mode: PullMode,
  stop: AbortSignal,
  deps: Deps,
): Promise<Tally> {
  const queues = Array.from({ length: agent.limits.lanes }, (_, lane) =>
    queueOf({ agent: name, lane }, deps),
  );
  for (const queue of queues) {
    for (const change of await deps.bus.ensure(queue)) deps.log("info", "queue.ensured", { change });
  }
  const tally: Tally = {};
  const sweeper = sweep(name, stop, deps);
  const onHandled = ({ as, dueAt }: Handled) => {
    tally[as] = (tally[as] ?? 0) + 1;
    if (dueAt !== undefined) sweeper.expect(dueAt);
  };
  if (mode === "forever") {
    await Promise.all([
      sweeper.run(),
      ...queues.map((queue) => pullLane(queue, agent, mode, stop, deps, onHandled)),
    ]);
  } else {
    await sweeper.once();
    for (const queue of queues) {
      await pullLane(queue, agent, mode, stop, deps, onHandled);
      if (mode === "once" && Object.keys(tally).length > 0) break;
    }
  }
  return tally;
}

function sweep(agent: string, stop: AbortSignal, deps: Deps) {
  const { clock, log } = deps;
  let next = 0;
  let sooner = new AbortController();
  const once = async () => {
    next = clock.now() + SWEEP_EVERY;
    try {
      const dispatched = await dispatchDue(deps, agent);
      if (dispatched > 0) log("info", "due.dispatched", { agent, dispatched });
    } catch (error) {
      log("warn", "due.failed", { agent, reason: messageOf(error) });
    }
  };
  return {
    once,
    expect: (dueAt: number) => {
      if (dueAt >= next) return;
      next = dueAt;
      sooner.abort();
    },
    run: async () => {
      while (!stop.aborted) {
        if (clock.now() >= next) await once();
        sooner = new AbortController();
        await clock.sleep(Math.max(1, next - clock.now()), AbortSignal.any([stop, sooner.signal]));
      }
    },
  };
}
