import type { Figure, Stage } from "../bench.ts";
import { bareWork } from "../floors/bare.ts";
import { pawlWork } from "../pawl.ts";
import { openPeers, type PeerName } from "../peers/peers.ts";
import { interleaved } from "../rounds.ts";
import type { Done, Work } from "../systems.ts";

/** Fewer tell nothing. */
const LEAST = 16;

export interface Beside {
  readonly pawl: readonly number[];
  readonly bare: readonly number[];
  /** Those that were asked for. */
  readonly others: readonly { readonly name: PeerName; readonly values: readonly number[] }[];
  /** What a task takes of the processors, Pawl's by the bare loop's. */
  cpu(what: string): Figure;
}

/** The same work by the bare loop, by Pawl and by peers, in turns. Rates are tasks a second. */
export async function beside(stage: Stage, work: Work, names?: readonly PeerName[]): Promise<Beside> {
  await using peers = await openPeers(stage, names);
  const sides = peers.open.map(({ name, peer, share }) => {
    const tasks = Math.max(LEAST, Math.round(work.tasks * share));
    const side = async (): Promise<Done> => ({ rate: await peer.rate({ ...work, tasks }), cpu: Number.NaN });
    return [name, side] as const;
  });
  const measured = await interleaved(stage, {
    bare: () => bareWork(work),
    pawl: () => pawlWork(work),
    ...Object.fromEntries(sides),
  });
  const of = (name: string, field: keyof Done) => (measured[name] ?? []).map((done) => done[field]);
  return {
    pawl: of("pawl", "rate"),
    bare: of("bare", "rate"),
    others: peers.open.map(({ name }) => ({ name, values: of(name, "rate") })),
    cpu: (what) => {
      const against = { name: "bare loop", values: of("bare", "cpu") };
      return { what: `CPU of ${what}`, unit: "µs", pawl: of("pawl", "cpu"), against };
    },
  };
}
