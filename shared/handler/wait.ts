import type { AgentContext } from "../agent.ts";
import { PawlError } from "../errors/errors.ts";
import type { Asked } from "../journal/asked.ts";
import type { Call } from "../journal/trail.ts";
import { approvalSignal } from "../task/signals.ts";
import { parseDuration } from "../values/duration.ts";
import type { Json, JsonObject } from "../values/json.ts";
import { type Scene, wrongCall } from "./scene.ts";

/** Less than this is waited for in place, under the heartbeat: to suspend would take longer. */
const IN_PLACE = 5_000;
export const SUMMARY_KEPT = 4_000;

interface Wanted {
  /** The call's name, and the signal's. */
  readonly name: string;
  readonly signal: string;
  readonly timeout?: string;
  readonly summary?: string;
  /** Of a conversation, which is the call in the handler's order. */
  readonly isPart?: boolean;
  /** What the journal keeps of the question. */
  readonly asked?: Asked;
}

/** What ends a wait, as the journal keeps it. */
export type Answer = { readonly value: Json } | { readonly timedOut: true };

/** Waits for a signal: its answer, and the key of the wait. */
export type Ask = (wanted: Wanted) => Promise<[Answer, string]>;

/**
 * Each deadline is fixed by the wait's first line in the journal, and each answer by its last: neither can change, unless
 * a redrive forgets the wait. An answer that was taken once is never taken again.
 */
export function answersOf({ task, journal, deps, through, park }: Scene): Ask {
  const { clock } = deps;
  const consumed = new Set(
    journal
      .listed()
      .flatMap((entry) => (entry.kind === "receipt" && entry.signal !== undefined ? [entry.signal] : [])),
  );

  return async ({ name, signal: signalName, timeout, summary, isPart = false, asked: kept }) => {
    const ms = timeout === undefined ? undefined : duration("timeout", timeout);
    const go = async ({ key, at, alone, known }: Call): Promise<[Answer, string]> => {
      if (known?.state === "done") return [(await journal.read(known.kept)) as unknown as Answer, key];
      const until = known ? known.until : ms && clock.now() + ms;
      const deadline = until !== undefined && { until };
      if (!known)
        await journal.append({
          kind: "intent",
          of: "wait",
          key,
          at,
          alone,
          ...deadline,
          ...(kept && { asked: kept }),
        });
      const index = task.signals.findIndex((one, i) => one.name === signalName && !consumed.has(i));
      if (index >= 0) {
        consumed.add(index);
        const value = { value: structuredClone(task.signals[index]?.value ?? null) };
        await journal.append({ kind: "receipt", key, signal: index, value });
        return [value, key];
      }
      if (until !== undefined && clock.now() >= until) {
        const value = { timedOut: true } as const;
        await journal.append({ kind: "receipt", key, value });
        return [value, key];
      }
      const asked = summary !== undefined && { summary: String(summary).slice(0, SUMMARY_KEPT) };
      const dueAt = until !== undefined && { dueAt: until };
      return park({ kind: "wait", waitingFor: [signalName], known: task.signals.length, ...asked, ...dueAt });
    };
    return through("wait", name, go, { inner: isPart });
  };
}

export function waitsOf(
  { journal, signal, deps: { clock }, heard, through, park }: Scene,
  answer: Ask,
): Pick<AgentContext<unknown>, "sleep" | "waitFor" | "approval"> {
  return {
    sleep: async (time) => {
      const ms = duration("sleep", time);
      await through("wait", "sleep", async ({ key, at, alone, known }) => {
        const until = known?.until ?? clock.now() + ms;
        if (!known) await journal.append({ kind: "intent", of: "wait", key, at, alone, until });
        const left = until - clock.now();
        if (left > IN_PLACE) return park({ kind: "sleep", dueAt: until });
        await clock.sleep(left, signal);
        signal.throwIfAborted();
      });
    },
    waitFor: async (event, options = {}) => {
      const { timeout } = options;
      const wanted = { name: event, signal: event, ...(timeout !== undefined && { timeout }) };
      const [found, key] = await answer(wanted);
      if ("timedOut" in found) heard.failed(key);
      return ("value" in found ? found.value : undefined) as never;
    },
    approval: async (name, options = {}) => {
      const [found, key] = await answer({ name, signal: approvalSignal(name), ...options });
      const failed = (code: "approval_timeout" | "approval_rejected", message: string) => {
        const error = new PawlError(code, message);
        heard.failed(key, error);
        return error;
      };
      if ("timedOut" in found)
        throw failed("approval_timeout", `Nobody answered approval ${name} within ${options.timeout}`);
      const { approved, by, note } = found.value as JsonObject;
      if (approved !== true) {
        const why = note ? `: ${String(note)}` : "";
        throw failed("approval_rejected", `Approval ${name} was rejected by ${String(by)}${why}`);
      }
      return { by: String(by), ...(note !== undefined && { note: String(note) }) };
    },
  };
}

function duration(what: string, text: unknown): number {
  const ms = typeof text === "string" ? parseDuration(text) : undefined;
  if (ms === undefined) throw wrongCall(what, text, 'a duration such as "30m"');
  return ms;
}
