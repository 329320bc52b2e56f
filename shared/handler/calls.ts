import type { AgentContext } from "../agent.ts";
import { PawlError } from "../errors/errors.ts";
import { type CallKind, known } from "../journal/entries.ts";
import { type Call, type How, type Trail, trail } from "../journal/trail.ts";
import type { CallTrace } from "../ports/trace.ts";
import { inside, isAwaitedAlone, isInside } from "./awaits.ts";
import { childrenOf } from "./child.ts";
import { effectOf } from "./effect.ts";
import { hearing } from "./heard.ts";
import { llmOf } from "./llm.ts";
import type { Scene } from "./scene.ts";
import { stepOf } from "./step.ts";
import type { Suspension } from "./suspension.ts";
import { answersOf, SUMMARY_KEPT, waitsOf } from "./wait.ts";

/** Several branches may each have come to an end of what they can do: a doubt is a person's, the rest wait together. */
function together(all: readonly Suspension[], isAlone: boolean): Suspension {
  const doubt = all.find((one) => one.kind === "doubt");
  if (doubt) return { ...doubt, ended: isAlone };
  const handOff = all.find((one) => one.kind === "handOff");
  if (handOff) return { ...handOff, ended: isAlone };
  const lingers = !isAlone && { lingers: true };
  const due = all.flatMap((one) => ("dueAt" in one && one.dueAt !== undefined ? [one.dueAt] : []));
  const waits = all.filter((one) => one.kind === "wait");
  const [first] = waits;
  if (!first) return { kind: "sleep", dueAt: Math.min(...due), ...lingers };
  const summaries = waits.flatMap(({ summary }) => (summary === undefined ? [] : [summary]));
  return {
    kind: "wait",
    waitingFor: [...new Set(waits.flatMap((one) => one.waitingFor))],
    known: first.known,
    ...lingers,
    ...(summaries.length > 0 && { summary: summaryOf(summaries) }),
    ...(due.length > 0 && { dueAt: Math.min(...due) }),
  };
}

/** Each question of several has its share: none may hide the others. */
function summaryOf(summaries: readonly string[]): string {
  const most = Math.floor(SUMMARY_KEPT / summaries.length) - 2;
  const cut = (text: string) => (text.length > most ? `${text.slice(0, most - 3).toWellFormed()}…` : text);
  return summaries.map(cut).join("\n\n");
}

/** What a scene is made of. */
type Given = Pick<Scene, "deps" | "task" | "agent" | "journal" | "signal" | "guard"> & {
  /** A replay goes along the handler's way through its journal. */
  readonly along?: (path: Trail) => Trail;
};

type Verbs = "step" | "effect" | "sleep" | "waitFor" | "approval" | "llm" | "submit";

/** What a handler can call, bound to its task's journal. */
export interface Calls extends Pick<AgentContext<unknown>, Verbs> {
  /** Resolves when the handler waits for what this execution won't bring, and no other call is under way. */
  readonly suspended: Promise<Suspension>;
  /** The handler is over: nothing more may begin. A promise of when what it left under way is over too, if anything is. */
  close(): Promise<void> | undefined;
  /** The answers that a handler which threw this failed on: where in the journal their calls begin. */
  failedOn(thrown: unknown): number[];
}

/** Of what is in the journal already there is nothing to tell. */
function traced(
  { deps: { trace, redact }, task }: Given,
  kind: CallKind,
  { key, known }: Call,
  how: How | undefined,
): CallTrace | undefined {
  if (!trace || known?.state === "done") return undefined;
  return trace.call({ task, kind, key, inner: how?.inner === true, known, redact });
}

/** More are not remembered: as many signals a document keeps. */
const MOST_FAILED_ON = 1_000;

export function callsOf(given: Given): Calls {
  const { agent, journal, signal, along = (path) => path } = given;
  const versions = { journal: journal.version, agent: agent.version };
  const path = along(trail(journal.listed(), versions, isAwaitedAlone));
  const { promise: suspended, resolve: suspend } = Promise.withResolvers<Suspension>();
  const { promise: quiet, resolve: beQuiet } = Promise.withResolvers<void>();
  const heard = hearing();
  const parked: Suspension[] = [];
  let isAlone = true;
  let underWay = 0;
  let mode: "open" | "suspended" | "closed" = "open";

  const over = () => {
    if (--underWay > 0) return;
    if (mode === "closed") return beQuiet();
    if (parked.length === 0) return;
    // The branch that has just got its answer may be about to go on: only when it has not, nobody will.
    setTimeout(() => {
      if (underWay > 0 || mode !== "open") return;
      mode = "suspended";
      suspend(together(parked, isAlone && parked.length === 1));
    }, 0);
  };
  const forEver = () => new Promise<never>(() => {});

  const scene: Scene = {
    ...given,
    heard,
    through: async (kind, name, go, how) => {
      if (mode === "closed")
        throw new PawlError("call_invalid", `${kind} ${name} was called after the handler ended: await it`);
      if (isInside() && kind === "wait") {
        const message = `${name} is waited for inside a step, effect or tool, which would never end. Wait outside of it`;
        throw new PawlError("call_invalid", message);
      }
      // Left to the next execution, with all that waits.
      if (mode === "suspended") return forEver();
      signal.throwIfAborted();
      const call = path.enter(kind, name, how);
      const trace = traced(given, kind, call, how);
      heard.began(call.alone);
      // Whoever goes on beside a wait is a branch of its own.
      if (parked.length > 0) isAlone = false;
      underWay++;
      try {
        return call.isEnd ? await scene.park({ kind: "handOff", ended: true }) : await go(call, trace);
      } catch (error) {
        trace?.failed(error);
        throw error;
      } finally {
        trace?.end();
        call.leave();
        over();
      }
    },
    within: inside,
    park: async (why) => {
      // What called it can't end any more, nor what that is a part of: there is nothing left to wait for.
      if (isInside()) {
        mode = "suspended";
        suspend(together([...parked, why], false));
        return forEver();
      }
      // Whoever called has begun to await it by then, or never will.
      await new Promise((resolve) => setTimeout(resolve, 0));
      // Another call under way shows branches that the stack does not, those of a `Promise.race`.
      isAlone &&= underWay === 1 && isAwaitedAlone();
      parked.push(why);
      over();
      return forEver();
    },
  };
  const ask = answersOf(scene);
  return {
    step: stepOf(scene),
    effect: effectOf(scene),
    ...waitsOf(scene, ask),
    llm: llmOf(scene, ask),
    submit: childrenOf(scene),
    suspended,
    close: () => {
      if (mode === "open") mode = "closed";
      return underWay === 0 ? undefined : quiet;
    },
    failedOn: (thrown) => {
      const keys = heard.failedOn(thrown);
      if (keys.length === 0) return [];
      const calls = known(journal.listed());
      return keys.flatMap((key) => calls.get(key)?.since ?? []).slice(0, MOST_FAILED_ON);
    },
  };
}
