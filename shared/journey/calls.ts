import type { Effect } from "../agent.ts";
import type { Running } from "../task/document.ts";
import { Fatal, messageOf, PawlError, Retry } from "../task/errors.ts";
import { type Call, type CallKind, resolutionName, trail } from "../task/journal.ts";
import type { JsonObject } from "../task/json.ts";
import { sha256 } from "../task/json.ts";
import type { Deps } from "./deps.ts";
import type { Journal } from "./journal.ts";

/** Why a handler goes no further in this execution. */
export interface Suspension {
  readonly kind: "doubt";
  readonly effect: string;
  readonly tries: number;
}

/** What a handler can call, bound to its task's journal. */
export interface Calls {
  step<T>(name: string, run: () => T | Promise<T>): Promise<T>;
  effect<T>(name: string, effect: Effect<T>): Promise<T>;
  /** Resolves when the handler waits for what this execution won't bring, and no other call is under way. */
  readonly suspended: Promise<Suspension>;
  /** The handler is over: what it left running may begin nothing more. */
  close(): void;
}

export function callsOf(
  task: Running,
  journal: Journal,
  agentVersion: number,
  signal: AbortSignal,
  deps: Pick<Deps, "settings">,
): Calls {
  const path = trail(journal.entries, { journal: journal.version, agent: agentVersion });
  const { promise: suspended, resolve: suspend } = Promise.withResolvers<Suspension>();
  let suspension: Suspension | undefined;
  let underWay = 0;
  let isClosed = false;

  const through = async <T>(kind: CallKind, name: string, go: (call: Call) => Promise<T>): Promise<T> => {
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
  };
  const over = () => {
    if (--underWay === 0 && suspension) suspend(suspension);
  };
  /** The call never settles: to throw would let the handler's own `catch` take it for a failure, and go on. */
  const park = (why: Suspension): Promise<never> => {
    suspension ??= why;
    over();
    return new Promise<never>(() => {});
  };

  const step = async (call: Call, run: () => unknown): Promise<unknown> => {
    if (call.known) return journal.read(call.known.kept);
    const { key, at, alone } = call;
    const { kept, value } = await journal.keep(await run(), `The result of step ${key}`);
    await journal.append({ kind: "step", key, at, alone, ...kept });
    return value;
  };

  /**
   * Dead before the intent is listed: nothing was begun. From then until the receipt is listed, the next execution
   * finds the effect open, and only `verify`, a receiver that honours the key, or a person closes it.
   */
  const effect = async (call: Call, { run, verify, honoursKey }: Effect<unknown>): Promise<unknown> => {
    const { key, at, alone, known } = call;
    const happened = async (receipt: unknown) => {
      const { kept, value } = await journal.keep(receipt, `The receipt of effect ${key}`);
      await journal.append({ kind: "receipt", key, ...kept });
      return value;
    };
    if (known?.state === "done") return journal.read(known.kept);
    const effectKey = await keyOf(task.id, key, deps);
    if (known && known.state !== "undone") {
      const told = resolution(task, key, known.tries);
      if (told?.happened) return happened(told.receipt);
      const found = told ? undefined : await verify?.(effectKey);
      if (found !== undefined) return happened(found);
      // "Not there" proves nothing while a request of a holder that died may still arrive.
      const isOver = verify && known.state === "unsure";
      if (!told && !honoursKey && !isOver) return park({ kind: "doubt", effect: key, tries: known.tries });
    }
    signal.throwIfAborted();
    await journal.append({ kind: "intent", key, at, alone });
    const ended = (kind: "undone" | "unsure", error: unknown) =>
      journal.append({ kind, key, why: messageOf(error).slice(0, 500) });
    if (signal.aborted) await ended("undone", "aborted before it began");
    signal.throwIfAborted();
    let receipt: unknown;
    try {
      receipt = await run(effectKey);
    } catch (error) {
      // Whoever throws one of these says that nothing happened.
      await ended(error instanceof Retry || error instanceof Fatal ? "undone" : "unsure", error);
      throw error;
    }
    return happened(receipt);
  };

  return {
    step: async (name, run) => {
      if (typeof run !== "function") throw wrong("step", name, "a function");
      return (await through("step", name, (call) => step(call, run))) as never;
    },
    effect: async (name, it) => {
      if (typeof it?.run !== "function") throw wrong("effect", name, "{ run, verify }, run a function");
      return (await through("effect", name, (call) => effect(call, it))) as never;
    },
    suspended,
    close: () => {
      isClosed = true;
    },
  };
}

function wrong(kind: CallKind, name: unknown, should: string): PawlError {
  return new PawlError("call_invalid", `${kind}(${JSON.stringify(name)}, …) needs ${should}`);
}

/** The same on every try and every runner. Safe in a header, whatever the effect is called. */
async function keyOf(taskId: string, key: string, { settings }: Pick<Deps, "settings">): Promise<string> {
  return `pawl-${(await sha256(`${settings.namespace}/${taskId}/${key}`)).slice(0, 40)}`;
}

/** What a person said about this very try. */
function resolution(task: Running, key: string, tries: number): JsonObject | undefined {
  return task.signals.findLast((one) => one.name === resolutionName(key, tries))?.value as
    | JsonObject
    | undefined;
}
