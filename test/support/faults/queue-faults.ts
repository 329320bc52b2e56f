import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { streamName } from "../../../shared/task/names.ts";
import { agentOf, type Bench, bench } from "../bench.ts";

/** Five tasks of one agent, completed. */
export async function begun(nats: LocalNats): Promise<Bench> {
  const b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  for (const id of ["t1", "t2", "t3", "t4", "t5"]) await b.submit({}, { id });
  await b.drain();
  return b;
}

export const stream = (b: Bench) => streamName(b.queue);
export const jsm = (b: Bench): Promise<JetStreamManager> => jetstreamManager(b.deps.nc);

export async function deleteStream(b: Bench, name = stream(b)): Promise<void> {
  await (await jsm(b)).streams.delete(name);
}

export const ids = (count: number) =>
  Array.from({ length: count }, (_, i) => `q${String(i).padStart(2, "0")}`);

export async function submitAll(b: Bench, count: number): Promise<void> {
  for (const id of ids(count)) await b.submit({}, { id });
}

/** Kinds and what they are about; {s} is the stream, {S} the namespace as streams have it. */
export const expected = (b: Bench, found: readonly string[]) =>
  found.map((one) => one.replace("{s}", stream(b)).replace("{S}", b.queue.namespace.toUpperCase())).sort();
