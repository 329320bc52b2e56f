import type { Agent, AgentContext } from "../agent.ts";
import type { Running } from "../task/document.ts";
import { PawlError } from "../task/errors.ts";
import { type Call, type CallKind, trail } from "../task/journal.ts";
import { childrenOf } from "./child.ts";
import type { Deps } from "./deps.ts";
import { effectOf } from "./effect.ts";
import type { Journal } from "./journal.ts";
import { llmOf } from "./llm.ts";
import { stepOf } from "./step.ts";
import { waitsOf } from "./wait.ts";

/** Why a handler goes no further in this execution. */
export type Suspension =
  | { readonly kind: "sleep"; readonly dueAt: number }
  | {
      readonly kind: "wait";
      readonly waitingFor: string;
      readonly summary?: string;
      readonly dueAt?: number;
      /** How many of the task's signals the handler knew of. */
      readonly known: number;
    }
  | { readonly kind: "doubt"; readonly effect: string; readonly tries: number };

/** One execution, as the calls of its handler see it. */
export interface Scene {
  readonly task: Running;
  readonly agent: Agent;
  readonly journal: Journal;
  readonly signal: AbortSignal;
  readonly deps: Deps;
  /** Goes through one call of the handler's: finds it in the journal, and keeps count of what is under way. */
  through<T>(kind: CallKind, name: string, go: (call: Call) => Promise<T>): Promise<T>;
  /** The call never settles: to throw would let the handler's own `catch` take it for a failure, and go on. */
  park(why: Suspension): Promise<never>;
}

type Verbs = "step" | "effect" | "sleep" | "waitFor" | "approval" | "llm" | "submit";

/** What a handler can call, bound to its task's journal. */
export interface Calls extends Pick<AgentContext<unknown>, Verbs> {
  /** Resolves when the handler waits for what this execution won't bring, and no other call is under way. */
  readonly suspended: Promise<Suspension>;
  /** The handler is over: what it left running may begin nothing more. */
  close(): void;
}

export function callsOf(
  task: Running,
  agent: Agent,
  journal: Journal,
  signal: AbortSignal,
  deps: Deps,
): Calls {
  const path = trail(journal.entries, { journal: journal.version, agent: agent.version });
  const { promise: suspended, resolve: suspend } = Promise.withResolvers<Suspension>();
  let suspension: Suspension | undefined;
  let underWay = 0;
  let isClosed = false;
  const over = () => {
    if (--underWay === 0 && suspension) suspend(suspension);
  };
  const scene: Scene = {
    task,
    agent,
    journal,
    signal,
    deps,
    through: async (kind, name, go) => {
      if (isClosed)
        throw new PawlError("call_invalid", `${kind} ${name} was called after the handler ended: await it`);
      signal.throwIfAborted();
      const call = path.enter(kind, name);
      underWay++;
      try {
        return await go(call);
      } finally {
        call.leave();
        over();
      }
    },
    park: (why) => {
      suspension ??= why;
      over();
      return new Promise<never>(() => {});
    },
  };
  const step = stepOf(scene);
  const effect = effectOf(scene);
  return {
    step,
    effect,
    ...waitsOf(scene),
    llm: llmOf(scene, step, effect),
    submit: childrenOf(scene),
    suspended,
    close: () => {
      isClosed = true;
    },
  };
}

export function wrongCall(call: string, name: unknown, should: string): PawlError {
  return new PawlError("call_invalid", `${call}(${JSON.stringify(name)}, …) needs ${should}`);
}
