import { configOf } from "../../functions/wiring/config.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Agent } from "../../shared/agent.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { type Submission, submit } from "../../shared/dispatch/submit.ts";
import { type HandledCounts, serve } from "../../shared/runner/serve.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { type OtlpReceiver, otlpReceiver, type Received } from "./http/otlp.ts";
import { type Logged, type TestWorld, wired, world } from "./servers/stores.ts";

/** The variables that turn traces on, for this receiver. */
export function tracedTo(receiver: OtlpReceiver, more: Record<string, string> = {}): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: "20", ...more };
}

export interface TracedStage extends AsyncDisposable {
  readonly receiver: OtlpReceiver;
  readonly world: TestWorld;
  readonly deps: Wired & { logged: Logged[] };
  submit(agent: string, id: string, input?: JsonObject, more?: Partial<Submission>): Promise<unknown>;
  /** Handles what is in the agent's queue, and sends what there is to tell. */
  drain(agent: string): Promise<HandledCounts>;
}

/** Agents on a real server, in this process, that tell a receiver of the test's own. */
export async function tracedStage(
  nats: LocalNats,
  agents: Readonly<Record<string, Agent>>,
  more: Record<string, string> = {},
): Promise<TracedStage> {
  const stack = new AsyncDisposableStack();
  const receiver = stack.use(await otlpReceiver());
  const w = world(nats, "nats-kv", { ackWait: 3_000 });
  const config = configOf(readVariables({ ...w.env, ...tracedTo(receiver, more) }));
  const deps = stack.use(await wired(config));
  const own = { ...deps, lanesOf: (name: string) => (name in agents ? 1 : undefined) };
  for (const agent of Object.keys(agents)) await deps.bus.ensure(queueOf(deps, { agent, lane: 0 }));
  return {
    receiver,
    world: { ...w, config },
    deps: Object.assign(deps, own),
    submit: (agent, id, input = {}, given = {}) => submit(deps, { agent, lanes: 1, id, input, ...given }),
    drain: async (name) => {
      const handled = await serve(deps, {
        name,
        agent: agents[name] as Agent,
        mode: "drain",
        stop: new AbortController().signal,
      });
      await deps.trace?.flush(10_000);
      return handled;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A trace that began elsewhere, and the span in it that submits. */
export const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
export const OUTSIDE = "00f067aa0ba902b7";
export const given = `00-${TRACE}-${OUTSIDE}-01`;

/** What a trace looks like: names, each below its parent, and those that are beside each other in order of the alphabet. */
export function tree(spans: readonly Received[], parent?: string, depth = 0): string[] {
  const isRoot = (span: Received) => !spans.some(({ spanId }) => spanId === span.parentSpanId);
  return spans
    .filter((span) => (parent === undefined ? isRoot(span) : span.parentSpanId === parent))
    .toSorted((a, b) => a.name.localeCompare(b.name) || a.start - b.start)
    .flatMap((span) => [`${"  ".repeat(depth)}${span.name}`, ...tree(spans, span.spanId, depth + 1)]);
}
