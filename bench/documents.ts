import { submitted } from "../shared/task/create.ts";
import type { Task } from "../shared/task/document.ts";
import { encodeEnvelope } from "../shared/task/envelope.ts";
import { apply } from "../shared/task/transitions.ts";

/** What a task's document and message are on their way, for floors that write the same and decide nothing. */
export interface Documents {
  readonly created: Task;
  readonly claimed: Task;
  readonly completed: Task;
  readonly message: Uint8Array;
}

const DAY = 86_400_000;

export function documentsOf(id: string, agent = "noop"): Documents {
  const now = Date.now();
  const mark = () => ({ now, stamp: crypto.randomUUID(), by: `bench-${id.slice(0, 4)}-12345` });
  const { stamp, by } = mark();
  const queue = `pawl_${agent}_0_g1`;
  const inputHash = "0".repeat(64);
  const envelope = { id, agent, lane: 0, input: { text: "hello" }, inputHash, at: now, stamp, by };
  const created = submitted(envelope, queue);
  const holder = { queue, seq: 1, token: crypto.randomUUID(), runner: by, via: "server", lease: 20_000 };
  const claimed = apply(created, { type: "claim", ...holder }, mark());
  const done = { type: "complete", result: { ok: true }, expiresAt: now + 90 * DAY } as const;
  return { created, claimed, completed: apply(claimed, done, mark()), message: encodeEnvelope(envelope) };
}

/** As a sealed document lies in its bucket. */
export function textOf(task: Task): string {
  const hash = "0".repeat(64);
  return JSON.stringify({ ...task, seal: { own: hash, before: hash, stamp: task.stamp } });
}
