import type { KeptMessage } from "../../../shared/ports/bus.ts";
import { type ConsumerState, copied, freshState, lift, settle } from "./consumer-state.ts";
import type { Time, Withdraw } from "./time.ts";

/** A message that was handed to a pull, with the counts that its acks will name. */
export interface Handed extends KeptMessage {
  readonly deliverySequence: number;
  readonly deliveries: number;
}

/** A pull that waits at the server. */
export interface Waiting {
  readonly until: number;
  hand(message: Handed): void;
}

export interface ConsumerLimits {
  ackWait: number;
  maxDeliver: number;
  maxAckPending: number;
}

/** What a consumer needs of its stream. */
export interface Source {
  readonly messages: ReadonlyMap<number, KeptMessage>;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** The server's word that it gave a message up. */
  givenUp(seq: number, deliveries: number): void;
}

/** A consumer that was restored looks at what is pending so much later, at the earliest. */
const FIRST_LOOK = 500;
const SECOND = 1_000;

/**
 * A pull consumer as JetStream 2.15 has it, down to what its counts say: acks are honoured whoever sends them, a delivery
 * is counted and not owned, and what once was put up for redelivery is redelivered whatever is said of it since.
 */
export class Consumer {
  readonly createdAt: number;
  readonly limits: ConsumerLimits;
  private readonly time: Time;
  private readonly source: Source;
  private readonly waiting: Waiting[] = [];
  private state: ConsumerState;
  /** To be delivered again with the next pull, in this order. */
  private redeliver: number[] = [];
  private saved: (ConsumerState & { at: number })[] = [];
  private looksFrom = 0;
  private alarm: Withdraw = () => {};

  constructor(time: Time, limits: ConsumerLimits, source: Source) {
    this.time = time;
    this.limits = { ...limits };
    this.source = source;
    this.createdAt = time.now;
    this.state = freshState(source.firstSeq);
  }

  /** Deliveries so far: an ack names the one it is about. */
  get deliverySequence(): number {
    return this.state.nextDelivery - 1;
  }

  get delivered(): number {
    return this.state.next - 1;
  }

  get ackFloor(): number {
    return this.state.floor;
  }

  get inFlight(): number {
    return this.state.pending.size;
  }

  get pending(): number {
    let ahead = 0;
    for (const seq of this.source.messages.keys()) if (seq >= this.state.next) ahead++;
    return ahead;
  }

  /** Also those that were given up, until they are gone. */
  get redelivered(): number {
    return this.limits.maxDeliver === 1 ? 0 : this.state.again.size;
  }

  wait(pull: Waiting): void {
    this.waiting.push(pull);
    this.serve();
  }

  withdraw(pull: Waiting): void {
    const i = this.waiting.indexOf(pull);
    if (i >= 0) this.waiting.splice(i, 1);
  }

  /** False where it is ignored, and not answered: nothing of that sequence was delivered, as far as this one knows. */
  ack(seq: number): boolean {
    if (seq >= this.state.next) return false;
    this.save();
    this.settle(seq);
    this.state.again.delete(seq);
    return true;
  }

  working(seq: number): void {
    const pending = this.state.pending.get(seq);
    if (!pending) return;
    this.save();
    pending.at = this.time.now;
  }

  /** By any delivery of a message that is pending. */
  nak(seq: number, delivery: number, delayMs: number): void {
    const { pending, floorDelivery, nextDelivery } = this.state;
    const one = pending.get(seq);
    if (!one || delivery <= floorDelivery || delivery > nextDelivery) return;
    if (delayMs > 0) {
      this.notAgain(seq);
      one.at = this.time.now - this.limits.ackWait + Math.ceil(delayMs);
    } else if (!this.redeliver.includes(seq)) this.redeliver.push(seq);
    this.serve();
  }

  /** The message was deleted. */
  removed(seq: number): void {
    this.save();
    this.settle(seq);
    this.state.again.delete(seq);
    this.serve();
  }

  purged(): void {
    this.save();
    const { state } = this;
    state.next = this.source.lastSeq + 1;
    state.pending.clear();
    state.again.clear();
    this.redeliver = [];
    lift(state);
    this.serve();
  }

  /** By hand: it counts for messages in flight too. */
  change(limits: Partial<ConsumerLimits>): void {
    Object.assign(this.limits, limits);
    this.serve();
  }

  /**
   * The server is killed and comes back: pulls are gone, and so is what was noted in the last moments. Times are on disk
   * in whole seconds, so that a message may come again up to a second early.
   */
  restart(forgets: number): void {
    this.waiting.length = 0;
    this.redeliver = [];
    const kept = this.saved.findLast(({ at }) => at <= this.time.now - forgets);
    if (forgets > 0 && kept) this.state = copied(kept);
    for (const [seq, pending] of this.state.pending) {
      pending.at = Math.floor(pending.at / SECOND) * SECOND;
      if (!this.source.messages.has(seq)) this.settle(seq);
    }
    this.saved = [];
    this.looksFrom = this.time.now + Math.min(FIRST_LOOK, this.limits.ackWait);
    this.serve();
  }

  /** It was deleted: nobody is served any more. */
  end(): void {
    this.waiting.length = 0;
    this.alarm();
  }

  /** Hands out what can be handed out, and asks to be called when there is more. */
  serve(): void {
    this.alarm();
    this.expire();
    const { now } = this.time;
    for (let i = 0; i < this.waiting.length; i++)
      if ((this.waiting[i] as Waiting).until <= now) this.waiting.splice(i--, 1);
    while (this.waiting.length > 0) {
      const found = this.next();
      if (!found) break;
      this.handOut(found.seq, found.deliveries);
    }
    let soonest = Number.POSITIVE_INFINITY;
    for (const [seq, { at }] of this.state.pending)
      if (!this.redeliver.includes(seq)) soonest = Math.min(soonest, at + this.limits.ackWait);
    if (soonest === Number.POSITIVE_INFINITY) return;
    this.alarm = this.time.at(Math.max(soonest, now, this.looksFrom), () => this.serve());
  }

  /** What nobody has spoken of for an ack wait is put up for redelivery: from then on only an ack or a nak stops that. */
  private expire(): void {
    const { now } = this.time;
    if (now < this.looksFrom) return;
    const late = [...this.state.pending].filter(
      ([seq, { at }]) => at + this.limits.ackWait <= now && !this.redeliver.includes(seq),
    );
    for (const [seq] of late.sort(([a], [b]) => a - b)) {
      // Of one delivery at most it is given up now; of more, when the next pull comes.
      const times = Math.max(1, this.state.again.get(seq) ?? 0);
      if (this.limits.maxDeliver > 0 && times >= this.limits.maxDeliver) {
        this.save();
        if (times === this.limits.maxDeliver) this.source.givenUp(seq, times);
        this.settle(seq);
        this.state.again.set(seq, times);
      } else this.redeliver.push(seq);
    }
  }

  private next(): { seq: number; deliveries: number } | undefined {
    const { state, limits, source } = this;
    for (let seq = this.redeliver.shift(); seq !== undefined; seq = this.redeliver.shift()) {
      const again = (state.again.get(seq) ?? 0) + 1;
      state.again.set(seq, again);
      if (limits.maxDeliver <= 0 || again < limits.maxDeliver) return { seq, deliveries: again + 1 };
      // Given up on: it stays where it is, and only this is said, once.
      this.save();
      if (again === limits.maxDeliver) source.givenUp(seq, again);
      this.settle(seq);
    }
    if (limits.maxAckPending > 0 && state.pending.size >= limits.maxAckPending) return undefined;
    for (const seq of source.messages.keys()) if (seq >= state.next) return { seq, deliveries: 1 };
    state.next = Math.max(state.next, source.lastSeq + 1);
    return undefined;
  }

  private handOut(seq: number, deliveries: number): void {
    this.save();
    const pull = this.waiting.shift() as Waiting;
    const { state } = this;
    const deliverySequence = state.nextDelivery++;
    state.next = Math.max(state.next, seq + 1);
    const pending = state.pending.get(seq);
    if (pending) pending.at = this.time.now;
    else state.pending.set(seq, { delivery: deliverySequence, at: this.time.now });
    pull.hand({ ...(this.source.messages.get(seq) as KeptMessage), deliverySequence, deliveries });
  }

  /** It is pending no more. */
  private settle(seq: number): void {
    this.notAgain(seq);
    settle(this.state, seq);
  }

  private notAgain(seq: number): void {
    const i = this.redeliver.indexOf(seq);
    if (i >= 0) this.redeliver.splice(i, 1);
  }

  /** As a server's disk has it from now on, should it be killed. */
  private save(): void {
    this.saved.push({ ...copied(this.state), at: this.time.now });
    if (this.saved.length > 20) this.saved.shift();
  }
}
