interface Pending {
  /** The first of its deliveries: later ones keep it. */
  readonly delivery: number;
  /** When it was delivered, or somebody said that it is worked on: an ack wait later it is delivered again. */
  at: number;
}

/** What is on disk of a consumer: a server that is killed may come back with what it was a while ago. */
export interface ConsumerState {
  /** The next sequence of the stream, and the next number of a delivery. */
  next: number;
  nextDelivery: number;
  /** All up to these are acked. */
  floor: number;
  floorDelivery: number;
  pending: Map<number, Pending>;
  /** How often each was delivered again. */
  again: Map<number, number>;
}

/** A new consumer's, which begins with what is there. */
export function freshState(firstSeq: number): ConsumerState {
  const next = Math.max(1, firstSeq);
  return { next, nextDelivery: 1, floor: next - 1, floorDelivery: 0, pending: new Map(), again: new Map() };
}

export function copied(state: ConsumerState): ConsumerState {
  const pending = new Map([...state.pending].map(([seq, one]) => [seq, { ...one }]));
  return { ...state, pending, again: new Map(state.again) };
}

/** A message is pending no more. The floor moves up to the next one that is. */
export function settle(state: ConsumerState, seq: number): void {
  const pending = state.pending.get(seq);
  if (!pending) return;
  state.pending.delete(seq);
  if (state.pending.size === 0) lift(state);
  else if (pending.delivery === state.floorDelivery + 1) {
    state.floorDelivery = pending.delivery;
    state.floor = seq;
    const ahead = [...state.pending].filter(([one]) => one > seq).sort(([a], [b]) => a - b)[0];
    if (!ahead) return;
    state.floorDelivery = ahead[1].delivery - 1;
    state.floor = ahead[0] - 1;
  }
}

/** All that was delivered is done with. */
export function lift(state: ConsumerState): void {
  state.floorDelivery = state.nextDelivery - 1;
  state.floor = state.next - 1;
}
