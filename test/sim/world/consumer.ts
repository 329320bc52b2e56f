import type { KeptMessage } from "../../../shared/ports/bus.ts";
import {
  type ConsumerState,
  copied,
  deliver,
  freshState,
  purge,
  restored,
  settle,
} from "./consumer-state.ts";
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

export interface ConsumerInfo {
  /** Deliveries so far: an ack names the one it is about. */
  readonly deliverySequence: number;
  readonly delivered: number;
  readonly ackFloor: number;
  readonly pending: number;
  readonly inFlight: number;
  readonly redelivered: number;
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

/**
 * A pull consumer as JetStream 2.15 has it, down to what its counts say: acks are honoured whoever sends them, a delivery
 * is counted and not owned, and what once was put up for redelivery is redelivered whatever is said of it since.
 */
export class Consumer {
  readonly createdAt: number;
  readonly limits: ConsumerLimits;
  private readonly time: Time;
  private readonly source: Source;
  private waiting: Waiting[] = [];
  private readonly withdrawn = new WeakSet<Waiting>();
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

  /** What it says of itself. Whoever asks makes it notice which pulls are gone. */
  info(): ConsumerInfo {
    this.notice();
    const { noted, delivered, pending, again } = this.state;
    let ahead = 0;
    for (const seq of this.source.messages.keys()) if (seq > delivered) ahead++;
    return {
      deliverySequence: noted.deliveries,
      delivered: noted.delivered,
      ackFloor: noted.floor,
      pending: ahead,
      inFlight: pending.size,
      // Also those that were given up, until they are gone.
      redelivered: this.limits.maxDeliver === 1 ? 0 : again.size,
    };
  }

  wait(pull: Waiting): void {
    this.waiting.push(pull);
    this.serve();
  }

  /** It is noticed later: when there is something to hand out, or might be, or when somebody looks. */
  withdraw(pull: Waiting): void {
    this.withdrawn.add(pull);
  }

  /** False where it is ignored, and not answered: nothing of that sequence was delivered, as far as this one knows. */
  ack(seq: number): boolean {
    if (seq > this.state.delivered) return false;
    this.done(seq);
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
    const { pending, floorDelivery, deliveries } = this.state;
    const one = pending.get(seq);
    if (!one || delivery <= floorDelivery || delivery > deliveries + 1) return;
    if (delayMs > 0) {
      this.notAgain(seq);
      one.at = this.time.now - this.limits.ackWait + Math.ceil(delayMs);
      this.arm();
      return;
    }
    if (!this.redeliver.includes(seq)) this.redeliver.push(seq);
    this.serve();
  }

  /** The message was deleted. */
  removed(seq: number): void {
    this.done(seq);
  }

  purged(): void {
    this.save();
    purge(this.state, this.source.lastSeq);
    this.redeliver = [];
    this.serve();
  }

  /** By hand: it counts for messages in flight too. */
  change(limits: Partial<ConsumerLimits>): void {
    this.notice();
    Object.assign(this.limits, limits);
    this.serve();
  }

  /**
   * The server is killed and comes back: pulls are gone, and so is what was noted in the last moments. A message may come
   * again up to a second early.
   */
  restart(forgets: number): void {
    this.waiting = [];
    this.redeliver = [];
    const kept = this.saved.findLast(({ at }) => at <= this.time.now - forgets);
    this.state = restored(forgets > 0 && kept ? kept : this.state);
    for (const seq of this.state.pending.keys())
      if (!this.source.messages.has(seq)) settle(this.state, seq, "done");
    this.saved = [];
    this.looksFrom = this.time.now + Math.min(FIRST_LOOK, this.limits.ackWait);
    this.serve();
  }

  /** It was deleted: nobody is served any more. */
  end(): void {
    this.waiting = [];
    this.alarm();
  }

  /** Hands out what can be handed out. */
  serve(): void {
    this.expire();
    const { now } = this.time;
    this.waiting = this.waiting.filter(({ until }) => until > now);
    while (this.waiting.length > 0) {
      const found = this.next();
      this.notice();
      if (!found) break;
      const pull = this.waiting.shift();
      if (pull) this.handOut(pull, found.seq, found.deliveries);
      else this.putBack(found.seq, found.deliveries);
    }
    this.arm();
  }

  private notice(): void {
    this.waiting = this.waiting.filter((pull) => !this.withdrawn.has(pull));
  }

  /** Asks to be called when the next message is to come again. */
  private arm(): void {
    this.alarm();
    let soonest = Number.POSITIVE_INFINITY;
    for (const [seq, { at }] of this.state.pending)
      if (!this.redeliver.includes(seq)) soonest = Math.min(soonest, at + this.limits.ackWait);
    if (soonest === Number.POSITIVE_INFINITY) return;
    this.alarm = this.time.at(Math.max(soonest, this.looksFrom), () => this.serve());
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
        this.source.givenUp(seq, times);
        settle(this.state, seq, "given up");
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
      source.givenUp(seq, again);
      settle(state, seq, "given up");
    }
    if (limits.maxAckPending > 0 && state.pending.size >= limits.maxAckPending) return undefined;
    for (const seq of source.messages.keys()) if (seq > state.delivered) return { seq, deliveries: 1 };
    state.delivered = Math.max(state.delivered, source.lastSeq);
    return undefined;
  }

  private handOut(pull: Waiting, seq: number, deliveries: number): void {
    this.save();
    const deliverySequence = deliver(this.state, seq, this.time.now);
    pull.hand({ ...(this.source.messages.get(seq) as KeptMessage), deliverySequence, deliveries });
  }

  /** Nobody is there to take it. */
  private putBack(seq: number, deliveries: number): void {
    if (deliveries === 1) return;
    if (deliveries === 2) this.state.again.delete(seq);
    else this.state.again.set(seq, deliveries - 2);
    this.redeliver.push(seq);
  }

  /** It was acked, or is gone. What waits for its place comes next. */
  private done(seq: number): void {
    const { pending, again } = this.state;
    const isFull = pending.has(seq) && pending.size >= this.limits.maxAckPending;
    this.save();
    this.notAgain(seq);
    settle(this.state, seq, "done");
    again.delete(seq);
    if (isFull) this.serve();
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
