/** Numbers from 0 to 1, the same for the same seed. */
export type Random = () => number;

export function randomOf(seed: string): Random {
  let state = 0x811c9dc5;
  for (const char of seed) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Span = readonly [least: number, most: number];

/** What is done to whom, and for how long, in milliseconds. The lease is 2 s and ack_wait 3 s: most outlast neither, some both. */
export const faultKinds = {
  "runner killed": { lasts: [0, 0] },
  "runner frozen": { lasts: [2_200, 6_000] },
  "broker killed": { lasts: [50, 1_500] },
  "node killed": { lasts: [50, 2_000] },
  "node cut off": { lasts: [3_000, 9_000] },
  "store cut off": { lasts: [300, 4_000] },
  "store delayed": { lasts: [200, 1_500] },
  "store half-open": { lasts: [500, 4_000] },
} as const satisfies Record<string, { readonly lasts: Span }>;

export type FaultKind = keyof typeof faultKinds;

/**
 * Faults come one after the other in each of these: the next is counted from the moment when the last is taken back, of
 * runners from the moment when it began, so that several may be frozen at once.
 */
export const channels = {
  runners: { every: [2_000, 5_000], kinds: ["runner killed", "runner frozen"] },
  broker: { every: [5_000, 10_000], kinds: ["broker killed"] },
  cluster: { every: [5_000, 10_000], kinds: ["node killed", "node killed", "node killed", "node cut off"] },
  store: { every: [5_000, 10_000], kinds: ["store cut off", "store delayed", "store half-open"] },
} as const satisfies Record<string, { readonly every: Span; readonly kinds: readonly FaultKind[] }>;

export type Channel = keyof typeof channels;

export interface Planned {
  readonly kind: FaultKind;
  /** How long after the one before. */
  readonly after: number;
  readonly lasts: number;
  /** Chooses the victim, from 0 to 1. */
  readonly pick: number;
}

/** The faults of a channel, without end. The moments are the machine's; which fault, when and for how long is the seed's. */
export function* planOf(channel: Channel, seed: string): Generator<Planned, never> {
  const random = randomOf(`${seed}/${channel}`);
  const within = ([least, most]: Span) => Math.round(least + random() * (most - least));
  const { every, kinds } = channels[channel];
  for (;;) {
    const after = within(every);
    const kind = kinds[Math.floor(random() * kinds.length)] as FaultKind;
    yield { kind, after, lasts: within(faultKinds[kind].lasts), pick: random() };
  }
}
