import type { Head } from "../journal/entries.ts";
import type { Delta, DeltaListener, Hearing } from "../ports/deltas.ts";
import type { Task } from "../task/document.ts";
import type { Followed } from "./follow.ts";

/** The fence is of the claim whose holder was asked, and not what that holder says. */
export type Told = Delta & { readonly fence: number };

/** What one follower of a task is told of its turns while they run. */
export interface TurnsAloud {
  /** The task and its journal were looked at, and what is new of them is told. */
  looked(task: Task, head: Head | undefined): void;
  /** This is told next. */
  told(event: Followed): void;
  stop(): void;
}

/**
 * Listens to the holder while a turn of it is open, so that a task which asks no model, or is nobody's, has nobody asked for
 * anything. `tell`: the next waits for it, so a reader that is slower than the model gets larger pieces, never a longer queue.
 */
export function turnsAloud(hears: DeltaListener, tell: (told: Told) => Promise<unknown>): TurnsAloud {
  let holder: { readonly token: string; readonly fence: number; readonly hearing: Hearing } | undefined;
  /** Of each turn what is not sent yet. */
  const unsent = new Map<string, Told>();
  /** Turns whose end is told: nothing that comes late is. */
  const over = new Map<string, number>();
  let isSending = false;

  const send = async () => {
    if (isSending) return;
    isSending = true;
    try {
      for (const [key, delta] of unsent) {
        unsent.delete(key);
        await tell(delta);
      }
    } catch {
      // The reader has gone.
    } finally {
      isSending = false;
    }
  };
  const stop = () => {
    holder?.hearing.stop();
    holder = undefined;
    unsent.clear();
  };
  const listen = ({ fence, ...claim }: { agent: string; token: string; fence: number }) => {
    const heard = (delta: Delta) => {
      if ((over.get(delta.key) ?? 0) >= fence) return;
      const before = unsent.get(delta.key);
      const isNext = before && before.at + before.text.length === delta.at;
      unsent.set(delta.key, isNext ? { ...before, text: before.text + delta.text } : { ...delta, fence });
      void send();
    };
    holder = { token: claim.token, fence, hearing: hears.hear(claim, heard) };
  };
  return {
    looked: (task, head) => {
      const held = task.state === "running" && hasOpenTurn(head) ? task : undefined;
      if (holder?.token === held?.token) return holder?.hearing.again();
      stop();
      if (held) listen({ agent: held.agent, token: held.token, fence: held.fence });
    },
    told: (event) => {
      if (event.kind !== "journal") return;
      const { kind, key } = event.data;
      if (kind !== "receipt") return;
      unsent.delete(key);
      over.set(key, holder?.fence ?? 0);
    },
    stop,
  };
}

/** By what the head has of the journal: an old one has no turns that are under way. */
function hasOpenTurn(head: Head | undefined): boolean {
  const open = new Set<string>();
  for (const entry of head?.recent ?? []) {
    if (entry.kind === "intent" && entry.of === "turn") open.add(entry.key);
    else if (entry.kind !== "step") open.delete(entry.key);
  }
  return open.size > 0;
}
