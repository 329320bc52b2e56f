import { jetstreamManager } from "@nats-io/jetstream";
import type { Wired } from "../functions/wiring/wire.node.ts";
import { headKey, taskKey } from "../shared/adapters/kv/bucket.ts";
import { type Entry, emptyHead, extended, type Head } from "../shared/journal/entries.ts";
import { headText, taskText } from "../shared/seal/seal.ts";
import { submitted } from "../shared/task/create.ts";
import type { Dispatched, Millis, Task } from "../shared/task/document.ts";
import type { Envelope } from "../shared/task/envelope.ts";
import { type Queue, streamName } from "../shared/task/names.ts";
import { apply } from "../shared/task/transitions.ts";

export interface Load {
  /** Sequences that came and went before. */
  readonly after?: number;
  readonly count: number;
  /** Which share of the tasks has a journal of three steps. */
  readonly journals?: number;
  /** Which share waits for an event, and is not over. */
  readonly live?: number;
  /** UUIDs, unless it is said. */
  readonly idOf?: (seq: number) => string;
  /** When all of them ended, or began to wait: now, unless it is said. */
  readonly at?: Millis;
}

/**
 * Sequences of a queue that have all come and gone, and the sealed document of each: a week of work in a few seconds. Into
 * NATS KV they go straight; into another store, as everybody writes there.
 */
export async function loadTasks(deps: Wired, queue: Queue, load: Load): Promise<void> {
  const { after = 0, count, journals = 0, live = 0, idOf = () => crypto.randomUUID() } = load;
  const stream = streamName(queue);
  await deps.bus.ensure(queue);
  const jsm = await jetstreamManager(deps.nc);
  // A purge up to a sequence that was never used leaves the stream as if all of them had come and gone.
  await jsm.streams.purge(stream, { seq: after + count + 1 });
  const put = deps.store.name.startsWith("NATS KV") ? straight(deps, queue.namespace) : asWritten(deps);
  const { at = Date.now() } = load;
  for (let i = 0; i < count; i++) {
    const seq = after + i + 1;
    const first = submitted(envelopeOf(queue, idOf(seq), at), stream);
    await put.one(taskOf(first, seq, isShare(i, journals), isShare(i, live)));
  }
  await put.end();
}

/** So many of a hundred in a row. */
const isShare = (i: number, share: number) => i % 100 < share * 100;

interface Loaded {
  readonly task: Task;
  readonly head?: Head;
}

const markAt = (now: Millis) => ({ now, stamp: crypto.randomUUID(), by: "bench" });

function envelopeOf({ agent, lane }: Queue, id: string, at: Millis): Envelope {
  const { stamp, by } = markAt(at);
  return { id, agent, lane, input: { text: "hello" }, inputHash: "h", at, stamp, by };
}

function taskOf(first: Dispatched, seq: number, isJournaled: boolean, isLive: boolean): Loaded {
  const { queue, createdAt: at } = first;
  const holder = { queue, seq, token: crypto.randomUUID(), runner: "bench", via: "s", lease: 20_000 };
  const claimed = apply(first, { type: "claim", ...holder }, markAt(at));
  const running = { ...claimed, journaled: isJournaled ? STEPS.length : 0 };
  const task = isLive
    ? apply(running, { type: "wait", waitingFor: ["answer"] }, markAt(at))
    : apply(running, { type: "complete", result: "hello", expiresAt: at + 90 * 86_400_000 }, markAt(at));
  return { task, ...(isJournaled && { head: headOf(claimed) }) };
}

const STEPS: readonly Entry[] = ["a", "b", "c"].map((name, at) => ({
  kind: "step",
  key: `${name}#1`,
  at,
  alone: true,
  value: { said: "hello" },
}));

function headOf(task: Task): Head {
  return extended(emptyHead(task, 1, crypto.randomUUID()), STEPS, crypto.randomUUID()).head;
}

interface Put {
  one(loaded: Loaded): Promise<void>;
  end(): Promise<void>;
}

/** Published to the bucket's stream, and looked for at the end. */
function straight({ nc, sealer }: Wired, namespace: string): Put {
  const bucket = `${namespace}-tasks`;
  let unflushed = 0;
  let expected = 0;
  const sealed = async <T extends Task | Head>(content: T, text: (content: T) => string): Promise<string> => {
    const before = await sealer.seal("what it replaced");
    const { stamp } = content;
    const own = await sealer.seal(text({ ...content, seal: { own: "", before, stamp } }));
    return JSON.stringify({ ...content, seal: { own, before, stamp } });
  };
  const put = async (key: string, text: string): Promise<void> => {
    nc.publish(`$KV.${bucket}.${key}`, text);
    expected++;
    if (++unflushed % 2_000 === 0) await nc.flush();
  };
  const messages = async () => {
    const jsm = await jetstreamManager(nc);
    return (await jsm.streams.info(`KV_${bucket}`)).state.messages;
  };
  const before = messages();
  return {
    one: async ({ task, head }) => {
      await before;
      if (head) await put(headKey(task.id), await sealed(head, headText));
      await put(taskKey(task.id), await sealed(task, (one) => taskText(one, one.id)));
    },
    end: async () => {
      await nc.flush();
      while ((await messages()) < (await before) + expected)
        await new Promise((resolve) => setTimeout(resolve, 50));
    },
  };
}

/** Writes under way at once. */
const AT_ONCE = 50;

function asWritten({ store }: Wired): Put {
  const under = new Set<Promise<unknown>>();
  const write = async ({ task, head }: Loaded) => {
    if (head) await store.putHead(head);
    await store.create(task);
  };
  return {
    one: async (loaded) => {
      const one = write(loaded).finally(() => under.delete(one));
      under.add(one);
      if (under.size >= AT_ONCE) await Promise.race(under);
    },
    end: async () => void (await Promise.all(under)),
  };
}
