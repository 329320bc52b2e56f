import { PawlError } from "../../../shared/errors/errors.ts";
import type { Advisory, KeptMessage, OutgoingMessage, PublishResult } from "../../../shared/ports/bus.ts";
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

interface Pending {
  /** When it is delivered again unless somebody says something. */
  due: number;
}

/** What is on disk of a consumer: a server that is killed may come back with what it was a while ago. */
interface Delivered {
  /** The newest stream sequence, and the number of deliveries. */
  stream: number;
  count: number;
  pending: Map<number, Pending>;
  times: Map<number, number>;
}

/**
 * One stream of the work-queue kind with one consumer, as JetStream has them: what it promises and, more to the point,
 * what it does not. Acks are honoured whoever sends them; a delivery is counted, not owned.
 */
export class Stream {
  readonly name: string;
  readonly createdAt: number;
  readonly messages = new Map<number, KeptMessage>();
  readonly limits: ConsumerLimits;
  lastSeq = 0;
  private readonly bySubject = new Map<string, number>();
  private readonly window = new Map<string, { seq: number; at: number }>();
  private readonly waiting: Waiting[] = [];
  private delivered: Delivered = { stream: 0, count: 0, pending: new Map(), times: new Map() };
  private saved: Delivered[] = [];
  private ackFloor = 0;
  private alarm: Withdraw = () => {};
  private readonly time: Time;
  private readonly duplicateWindow: number;
  private readonly advise: (advisory: Omit<Advisory, "at">) => void;
  private readonly left: (stream: Stream, message: KeptMessage, why: "acked" | "removed") => void;

  constructor(given: {
    name: string;
    time: Time;
    limits: ConsumerLimits;
    duplicateWindow: number;
    advise: (advisory: Omit<Advisory, "at">) => void;
    /** Told of every message that leaves the stream. */
    left: (stream: Stream, message: KeptMessage, why: "acked" | "removed") => void;
  }) {
    this.name = given.name;
    this.time = given.time;
    this.limits = { ...given.limits };
    this.duplicateWindow = given.duplicateWindow;
    this.advise = given.advise;
    this.left = given.left;
    this.createdAt = this.time.now;
  }

  publish(subject: string, { data, msgId, headers }: OutgoingMessage): PublishResult {
    const { now } = this.time;
    const before = this.window.get(msgId);
    if (before && now - before.at < this.duplicateWindow) return { kind: "duplicate", seq: before.seq };
    if (this.bySubject.has(subject)) return { kind: "occupied" };
    const seq = ++this.lastSeq;
    this.messages.set(seq, { seq, subject, data, headers: new Map(Object.entries(headers)), at: now });
    this.bySubject.set(subject, seq);
    this.window.set(msgId, { seq, at: now });
    this.serve();
    return { kind: "stored", seq };
  }

  last(subject: string): KeptMessage | undefined {
    const seq = this.bySubject.get(subject);
    return seq === undefined ? undefined : this.messages.get(seq);
  }

  /** Deliveries so far: an ack names the one it is about, and nobody compares it. */
  get deliverySequence(): number {
    return this.delivered.count;
  }

  get pending(): number {
    let ahead = 0;
    for (const seq of this.messages.keys()) if (seq > this.delivered.stream) ahead++;
    return ahead;
  }

  get inFlight(): number {
    return this.delivered.pending.size;
  }

  get consumer() {
    return { createdAt: this.createdAt, delivered: this.delivered.stream, ackFloor: this.ackFloor };
  }

  get redelivered(): number {
    return [...this.delivered.times.values()].filter((times) => times > 1).length;
  }

  wait(pull: Waiting): void {
    this.waiting.push(pull);
    this.serve();
  }

  withdraw(pull: Waiting): void {
    const i = this.waiting.indexOf(pull);
    if (i >= 0) this.waiting.splice(i, 1);
  }

  ack(seq: number): void {
    this.save();
    this.delivered.pending.delete(seq);
    this.delivered.times.delete(seq);
    this.delivered.stream = Math.max(this.delivered.stream, seq);
    this.drop(seq, "acked");
    if (this.delivered.pending.size === 0) this.ackFloor = this.delivered.stream;
    this.serve();
  }

  working(seq: number): void {
    const pending = this.delivered.pending.get(seq);
    if (pending) pending.due = this.time.now + this.limits.ackWait;
    this.serve();
  }

  nak(seq: number, delayMs: number): void {
    const pending = this.delivered.pending.get(seq);
    if (pending) pending.due = this.time.now + delayMs;
    this.serve();
  }

  remove(seq: number): void {
    this.save();
    this.delivered.pending.delete(seq);
    this.delivered.times.delete(seq);
    this.drop(seq, "removed");
    this.serve();
  }

  /**
   * The server is killed and comes back: pulls are gone, the ids of messages that were acked are forgotten, and so are
   * deliveries of the last moments. What was acked stays acked.
   */
  restart(forgets: number): void {
    this.waiting.length = 0;
    for (const [id, { seq }] of this.window) if (!this.messages.has(seq)) this.window.delete(id);
    const since = this.time.now - forgets;
    const kept = this.saved.findLast((one) => (one as Delivered & { at: number }).at <= since);
    if (forgets > 0 && kept) {
      const there = (seq: number) => this.messages.has(seq);
      this.delivered = {
        stream: Math.max(kept.stream, this.ackFloor),
        count: kept.count,
        pending: new Map([...kept.pending].filter(([seq]) => there(seq)).map(([seq]) => [seq, { due: 0 }])),
        times: new Map([...kept.times].filter(([seq]) => there(seq))),
      };
    }
    this.saved = [];
    for (const pending of this.delivered.pending.values()) pending.due = this.time.now + this.limits.ackWait;
    this.serve();
  }

  /** The consumer was changed by hand: it counts for messages in flight too. */
  change(limits: Partial<ConsumerLimits>): void {
    Object.assign(this.limits, limits);
    this.serve();
  }

  private drop(seq: number, why: "acked" | "removed"): void {
    const message = this.messages.get(seq);
    if (!message) return;
    this.messages.delete(seq);
    if (this.bySubject.get(message.subject) === seq) this.bySubject.delete(message.subject);
    this.left(this, message, why);
  }

  /** Hands out what can be handed out, and asks to be called when there is more. */
  private serve(): void {
    this.alarm();
    const { now } = this.time;
    for (let i = 0; i < this.waiting.length; i++)
      if ((this.waiting[i] as Waiting).until <= now) this.waiting.splice(i--, 1);
    while (this.waiting.length > 0) {
      const seq = this.next();
      if (seq === undefined) break;
      this.handOut(seq);
    }
    const due = [...this.delivered.pending.values()].map((one) => one.due);
    const next = Math.min(...due);
    if (due.length > 0 && this.waiting.length > 0)
      this.alarm = this.time.at(Math.max(next, now), () => this.serve());
  }

  private next(): number | undefined {
    const { pending, times } = this.delivered;
    const { now } = this.time;
    for (const [seq, { due }] of pending) {
      if (due > now) continue;
      const deliveries = times.get(seq) ?? 0;
      if (this.limits.maxDeliver > 0 && deliveries >= this.limits.maxDeliver) {
        // Given up on: it stays where it is, and only this is said.
        this.save();
        pending.delete(seq);
        this.advise({ queue: this.name, seq, deliveries });
        continue;
      }
      return seq;
    }
    if (pending.size >= this.limits.maxAckPending) return undefined;
    for (const seq of this.messages.keys()) if (seq > this.delivered.stream) return seq;
    return undefined;
  }

  private handOut(seq: number): void {
    this.save();
    const pull = this.waiting.shift() as Waiting;
    const { delivered } = this;
    const deliveries = (delivered.times.get(seq) ?? 0) + 1;
    delivered.times.set(seq, deliveries);
    delivered.count++;
    delivered.stream = Math.max(delivered.stream, seq);
    // Anew, so that it comes last among those that are due.
    delivered.pending.delete(seq);
    delivered.pending.set(seq, { due: this.time.now + this.limits.ackWait });
    const message = this.messages.get(seq) as KeptMessage;
    pull.hand({ ...message, deliverySequence: delivered.count, deliveries });
  }

  /** As a server's disk has it from now on, should it be killed. */
  private save(): void {
    const { stream, count, pending, times } = this.delivered;
    const copy = { stream, count, pending: new Map(pending), times: new Map(times), at: this.time.now };
    this.saved.push(copy);
    if (this.saved.length > 20) this.saved.shift();
  }
}

/** A simulated NATS server: its streams, its word on messages that it gave up, and which life of it this is. */
export class Broker {
  readonly streams = new Map<string, Stream>();
  readonly advisories: Advisory[] = [];
  /** Who answers for the claims with these tokens. */
  readonly holders = new Map<string, () => boolean | undefined>();
  life = 1;
  advisoriesSince: number | undefined;
  private said = 0;

  stream(name: string, what: string): Stream {
    const found = this.streams.get(name);
    if (!found) throw new PawlError("bus_refused", `${what}: there is no stream ${name}`);
    return found;
  }

  advise(advisory: Omit<Advisory, "at">): void {
    if (this.advisoriesSince === undefined) return;
    this.advisories.push({ ...advisory, at: ++this.said });
  }

  restart(forgets: number): void {
    this.life++;
    for (const stream of this.streams.values()) stream.restart(forgets);
  }
}
