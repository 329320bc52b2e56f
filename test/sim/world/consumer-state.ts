interface Pending {
  /** The first of its deliveries: later ones keep it. */
  readonly delivery: number;
  /** When it was delivered, or somebody said that it is worked on: an ack wait later it is delivered again. */
  at: number;
}

/** How far a consumer is: up to where messages were delivered, and up to where all are acked. */
interface Reach {
  /** The newest sequence of the stream that was delivered, and how many deliveries there were. */
  delivered: number;
  deliveries: number;
  floor: number;
  floorDelivery: number;
}

/** What a consumer knows. */
export interface ConsumerState extends Reach {
  readonly pending: Map<number, Pending>;
  /** How often each was delivered again. */
  readonly again: Map<number, number>;
  /**
   * What its file says, and so whoever asks for it is told: sequences that were skipped since they are gone, and messages
   * that were given up, are not in it.
   */
  noted: Reach;
}

/** A new consumer's, which begins with what is there. */
export function freshState(firstSeq: number): ConsumerState {
  const delivered = Math.max(1, firstSeq) - 1;
  const reach = { delivered, deliveries: 0, floor: delivered, floorDelivery: 0 };
  return { ...reach, pending: new Map(), again: new Map(), noted: { ...reach } };
}

/** As a server finds it that was killed. Times are on disk in whole seconds. */
export function restored({ pending, again, noted }: ConsumerState): ConsumerState {
  const whole = (at: number) => Math.floor(at / 1_000) * 1_000;
  const there = [...pending].map(([seq, { delivery, at }]) => [seq, { delivery, at: whole(at) }] as const);
  return { ...noted, pending: new Map(there), again: new Map(again), noted: { ...noted } };
}

export function copied(state: ConsumerState): ConsumerState {
  const pending = new Map([...state.pending].map(([seq, one]) => [seq, { ...one }]));
  return { ...state, pending, again: new Map(state.again), noted: { ...state.noted } };
}

/** A message is handed out; says which delivery that is. */
export function deliver(state: ConsumerState, seq: number, now: number): number {
  const pending = state.pending.get(seq);
  state.deliveries++;
  state.delivered = Math.max(state.delivered, seq);
  state.noted.deliveries = state.deliveries;
  state.noted.delivered = Math.max(state.noted.delivered, seq);
  if (pending) pending.at = now;
  else state.pending.set(seq, { delivery: state.deliveries, at: now });
  return state.deliveries;
}

/** A message is pending no more. What was given up moves no floor that anybody is told of. */
export function settle(state: ConsumerState, seq: number, why: "done" | "given up"): void {
  const pending = state.pending.get(seq);
  if (!pending) return;
  state.pending.delete(seq);
  lift(state, state.pending, pending.delivery, seq);
  if (why === "done") lift(state.noted, state.pending, pending.delivery, seq);
}

/** The floor moves up to the first message that is pending. */
function lift(reach: Reach, pending: ReadonlyMap<number, Pending>, delivery: number, seq: number): void {
  if (pending.size === 0) {
    reach.floor = reach.delivered;
    reach.floorDelivery = reach.deliveries;
    return;
  }
  if (delivery !== reach.floorDelivery + 1) return;
  const ahead = [...pending].filter(([one]) => one > seq).sort(([a], [b]) => a - b)[0];
  reach.floor = ahead ? ahead[0] - 1 : seq;
  reach.floorDelivery = ahead ? ahead[1].delivery - 1 : delivery;
}

/** All messages are gone. */
export function purge(state: ConsumerState, lastSeq: number): void {
  const { deliveries } = state;
  const reach = { delivered: lastSeq, deliveries, floor: lastSeq, floorDelivery: deliveries };
  state.pending.clear();
  state.again.clear();
  Object.assign(state, reach, { noted: { ...reach } });
}
