import { jetstreamManager } from "@nats-io/jetstream";
import type { Wired } from "../functions/wire.node.ts";
import { submitted } from "../shared/task/create.ts";
import { type Queue, streamName } from "../shared/task/names.ts";
import { apply } from "../shared/task/transitions.ts";

/**
 * A queue whose sequences have all come and gone, and the completed document of each, loaded straight into NATS KV: a
 * week of work in a few seconds.
 */
export async function loadTasks(deps: Wired, queue: Queue, count: number): Promise<void> {
  const stream = streamName(queue);
  const bucket = `${queue.namespace}-tasks`;
  await deps.bus.ensure(queue);
  const jsm = await jetstreamManager(deps.nc);
  // A purge up to a sequence that was never used leaves the stream as if all of them had come and gone.
  await jsm.streams.purge(stream, { seq: count + 1 });
  const now = Date.now();
  const mark = (at: number) => ({ now: at, stamp: crypto.randomUUID(), by: "bench" });
  const expiresAt = now + 90 * 86_400_000;
  for (let seq = 1; seq <= count; seq++) {
    const at = now - Math.floor((7 * 86_400_000 * (count - seq)) / count) - 600_000;
    const { stamp, by } = mark(at);
    const kind = { id: `task-${seq}`, agent: queue.agent, lane: queue.lane, input: { text: "hello" } };
    const first = submitted({ ...kind, inputHash: "h", at, stamp, by }, stream);
    const holder = { queue: stream, seq, token: "t", runner: "bench", via: "s", lease: 20_000 };
    const running = apply(first, { type: "claim", ...holder }, mark(at + 2));
    const done = apply(running, { type: "complete", result: "hello", expiresAt }, mark(at + 9));
    deps.nc.publish(`$KV.${bucket}.task.${kind.id}`, JSON.stringify(done));
    if (seq % 2_000 === 0) await deps.nc.flush();
  }
  for (let stored = 0; stored < count; ) {
    stored = (await jsm.streams.info(`KV_${bucket}`)).state.messages;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
