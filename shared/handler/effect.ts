import type { AgentContext, Effect } from "../agent.ts";
import { Fatal, Retry } from "../errors/errors.ts";
import type { Asked } from "../journal/asked.ts";
import { resolutionName } from "../journal/entries.ts";
import type { Call } from "../journal/trail.ts";
import type { CallTrace } from "../ports/trace.ts";
import type { Running } from "../task/document.ts";
import { type JsonObject, sha256 } from "../values/json.ts";
import { disown } from "./disowned.ts";
import { type Scene, said, wrongCall } from "./scene.ts";

/**
 * Dead before the intent is listed: nothing was begun. From then until the receipt is listed, the next execution finds
 * the effect open, and only `verify`, a receiver that honours the key, or a person closes it.
 */
export function effectOf(scene: Scene): AgentContext<unknown>["effect"] {
  return async (name, it) => (await runEffect(scene, name, it)) as never;
}

/** `asked`: what a conversation gives to a tool, of which the effect is a part. */
export async function runEffect<T>(
  scene: Scene,
  name: string,
  it: Effect<T>,
  asked?: () => { asked?: Asked },
): Promise<unknown> {
  const { task, journal, signal, deps, through, within, park } = scene;
  const go = async (
    call: Call,
    trace: CallTrace | undefined,
    { run, verify, honoursKey }: Effect<T>,
  ): Promise<unknown> => {
    const { key, at, alone, known } = call;
    const happened = async (receipt: unknown) => {
      const { kept, value } = await journal.keep(receipt, `The receipt of effect ${key}`);
      await journal.append({ kind: "receipt", key, ...kept });
      return value;
    };
    if (known?.state === "done") return journal.read(known.kept);
    const effectKey = await keyOf(deps.settings.namespace, task, key);
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
    const ended = (kind: "undone" | "unsure", error: unknown) =>
      journal.append({ kind, key, why: said(deps, error).slice(0, 500) });
    let isSaid = false;
    try {
      const given = known ? ({ again: true } as const) : asked?.();
      await journal.append({ kind: "intent", of: "effect", key, at, alone, fence: task.fence, ...given });
      if (signal.aborted) {
        await ended("undone", "aborted before it began");
        isSaid = true;
        throw signal.reason;
      }
    } catch (error) {
      // Listed or not, by this holder it was not begun.
      if (!isSaid) await disown(deps, task, key, (known?.tries ?? 0) + 1);
      throw error;
    }
    let receipt: unknown;
    try {
      receipt = await within(() => run(effectKey), trace);
    } catch (error) {
      // Whoever throws one of these says that nothing happened.
      await ended(error instanceof Retry || error instanceof Fatal ? "undone" : "unsure", error);
      throw error;
    }
    return happened(receipt);
  };
  if (typeof it?.run !== "function") throw wrongCall("effect", name, "{ run, verify }, run a function");
  return through("effect", name, (call, trace) => go(call, trace, it), { inner: asked !== undefined });
}

/** The same on every try and every runner. Safe in a header, whatever the effect is called. */
async function keyOf(namespace: string, { id, epoch, createdAt }: Running, key: string): Promise<string> {
  // Redriven from scratch, it is meant to happen again.
  const again = epoch > 0 ? `/${epoch}` : "";
  return `pawl-${sha256(`${namespace}/${id}/${createdAt}/${key}${again}`).slice(0, 40)}`;
}

/** What a person said about this very try. */
function resolution(task: Running, key: string, tries: number): JsonObject | undefined {
  const signal = task.signals.findLast((one) => one.name === resolutionName(key, tries));
  return signal?.value as JsonObject | undefined;
}
