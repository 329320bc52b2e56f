import {
  AckPolicy,
  type Consumer,
  type JetStreamClient,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { startNats } from "../../infra/local/nats-server.ts";
import { documentsOf, textOf } from "../documents.ts";
import { each, stopwatch } from "../rounds.ts";
import { type Done, done, type Work } from "../systems.ts";

const ACK_WAIT = 30;
const NANOS = 1_000_000_000;

/** Raw nats.js on a server of its own, with streams and consumers like Pawl's, and a bucket. */
export interface Bare extends AsyncDisposable {
  readonly url: string;
  readonly js: JetStreamClient;
  readonly kv: KV;
  /** A stream and a consumer a lane. */
  readonly lanes: readonly string[];
}

export async function openBare(lanes: number): Promise<Bare> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const nc = await connect({ servers: nats.url, noAsyncTraces: true });
  stack.defer(() => nc.close());
  const js = jetstream(nc);
  const jsm = await jetstreamManager(nc);
  const kv = await new Kvm(js).create("bare", { history: 1 });
  const names = Array.from({ length: lanes }, (_, lane) => `bare${lane}`);
  for (const name of names) {
    await jsm.streams.add({ name, subjects: [`${name}.*`], retention: RetentionPolicy.Workqueue });
    const consumer = { durable_name: "runner", ack_policy: AckPolicy.Explicit, max_ack_pending: 1 };
    await jsm.consumers.add(name, { ...consumer, ack_wait: ACK_WAIT * NANOS });
  }
  const owned = stack.move();
  return { url: nats.url, js, kv, lanes: names, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * The least that a task can cost which has a document: next, two guarded writes, confirmed ack, one after the other in
 * each consumer. What is written is as long as Pawl's, and made before. With steps: a guarded write more for each.
 */
export async function bareWork({ tasks, lanes, steps }: Work): Promise<Done> {
  await using bare = await openBare(lanes);
  const { js, kv } = bare;
  const revisions = new Map<string, number>();
  await each(tasks, 64, async (index) => {
    const id = crypto.randomUUID();
    const { created, message } = documentsOf(id);
    revisions.set(id, await kv.create(id, textOf(created)));
    await js.publish(`${bare.lanes[index % lanes]}.${id}`, message, { msgID: `submit:${id}` });
  });
  const { claimed, completed } = documentsOf(crypto.randomUUID());
  const [first, last] = [textOf(claimed), textOf(completed)];
  const consumers = await Promise.all(bare.lanes.map((name) => js.consumers.get(name, "runner")));
  const drain = async (consumer: Consumer, lane: number) => {
    for (let left = Math.ceil((tasks - lane) / lanes); left > 0; left--) {
      const message = await consumer.next({ expires: 5_000 });
      if (!message) throw new Error(`Nothing came in lane ${lane}, with ${left} tasks left`);
      const id = message.subject.split(".")[1] as string;
      const revision = await kv.update(id, first, revisions.get(id) as number);
      let seen = steps > 0 ? await kv.create(`${id}.journal`, first) : 0;
      for (let step = 1; step < steps; step++) seen = await kv.update(`${id}.journal`, first, seen);
      await kv.update(id, last, revision);
      await message.ackAck();
    }
  };
  const took = stopwatch();
  await Promise.all(consumers.map(drain));
  return done(tasks, took());
}
