import { AsyncLocalStorage } from "node:async_hooks";
import type { Agent, AgentContext, ToolCall } from "../agent.ts";
import type { CallTrace } from "../ports/trace.ts";

/** By its property's name, which no minifier changes, a handler is found in the stack of what it awaits. */
const MAIN_LINE = {
  async pawlHandler(agent: Agent, context: AgentContext<unknown>): Promise<unknown> {
    return await agent.run(context);
  },
};

export const runHandler = MAIN_LINE.pawlHandler;

const DEEPEST = 200;

/**
 * Whether the handler itself awaits the caller, and nothing beside it: engines keep the chain of awaits in the stack,
 * with the `Promise.all` that it leads through. Where the chain can't be followed the answer is no. What a handler has
 * begun and not awaited yet is not seen, nor the others of a `Promise.race`. To be asked after an await of its own,
 * when whoever called has begun to await.
 */
export function isAwaitedAlone(): boolean {
  const stack = deepStack();
  const [own = "", ...others] = typeof stack === "string" ? stack.split(/\bpawlHandler\b/) : [];
  return others.length > 0 && !/\bPromise\.\w+ \(index/.test(own);
}

function deepStack(): unknown {
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = DEEPEST;
    return new Error().stack;
  } catch {
    // Somebody has frozen the language's own objects.
    return undefined;
  } finally {
    if (Error.stackTraceLimit !== stackTraceLimit) Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Where nothing is traced. */
const UNTRACED: ToolCall = { traceparent: undefined };

const insideCalls = new AsyncLocalStorage<ToolCall>();

/** Runs the author's part of a step, effect or tool, and all that it awaits. */
export function inside<T>(run: () => T, trace?: CallTrace): T {
  return insideCalls.run(trace ?? UNTRACED, run);
}

export function isInside(): boolean {
  return insideCalls.getStore() !== undefined;
}

/** The call that whoever asks is inside of. Authors are given no more of it. */
export function called(): ToolCall {
  const traceparent = insideCalls.getStore()?.traceparent;
  return traceparent === undefined ? UNTRACED : { traceparent };
}
