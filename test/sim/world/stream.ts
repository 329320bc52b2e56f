import { PawlError } from "../../../shared/errors/errors.ts";
import type { KeptMessage, OutgoingMessage, PublishResult } from "../../../shared/ports/bus.ts";
import { Consumer, type ConsumerLimits } from "./consumer.ts";
import type { Time } from "./time.ts";

export interface StreamLimits {
  readonly duplicateWindow: number;
  readonly bytes: number;
}

/** Told of every message that leaves a stream. */
export type Left = (stream: Stream, message: KeptMessage, why: "acked" | "removed") => void;

/** What a message takes beside its subject, headers and data. */
const OVERHEAD = 34;

/**
 * One stream of the work-queue kind with one consumer, as JetStream has them: what it promises and, more to the point,
 * what it does not.
 */
export class Stream {
  readonly name: string;
  readonly createdAt: number;
  readonly messages = new Map<number, KeptMessage>();
  lastSeq = 0;
  /** None where somebody has deleted it. */
  consumer: Consumer | undefined;
  private bytes = 0;
  private readonly bySubject = new Map<string, number>();
  private readonly window = new Map<string, { seq: number; at: number }>();
  private readonly time: Time;
  private readonly limits: StreamLimits;
  private readonly advise: (seq: number, deliveries: number) => void;
  private readonly left: Left;

  constructor(given: {
    name: string;
    time: Time;
    limits: StreamLimits;
    advise: (seq: number, deliveries: number) => void;
    left: Left;
  }) {
    this.name = given.name;
    this.time = given.time;
    this.limits = given.limits;
    this.advise = given.advise;
    this.left = given.left;
    this.createdAt = this.time.now;
  }

  publish(subject: string, { data, msgId, headers }: OutgoingMessage): PublishResult {
    const { now } = this.time;
    const before = this.window.get(msgId);
    if (before && now - before.at < this.limits.duplicateWindow)
      return { kind: "duplicate", seq: before.seq };
    if (this.bySubject.has(subject)) return { kind: "occupied" };
    const all = new Map([...Object.entries(headers), ["Nats-Msg-Id", msgId]]);
    const message = { seq: this.lastSeq + 1, subject, data, headers: all, at: now };
    const { seq } = message;
    const bytes = this.bytes + sizeOf(message);
    if (this.limits.bytes > 0 && bytes > this.limits.bytes)
      throw new PawlError("queue_full", `${this.name} is full`);
    this.bytes = bytes;
    this.lastSeq = seq;
    this.messages.set(seq, message);
    this.bySubject.set(subject, seq);
    this.window.set(msgId, { seq, at: now });
    this.consumer?.serve();
    return { kind: "stored", seq };
  }

  last(subject: string): KeptMessage | undefined {
    const seq = this.bySubject.get(subject);
    return seq === undefined ? undefined : this.messages.get(seq);
  }

  /** Of an empty stream the one that comes next, but for one that never had any. */
  get firstSeq(): number {
    const [first] = this.messages.keys();
    return first ?? (this.lastSeq > 0 ? this.lastSeq + 1 : 0);
  }

  /** One that is made anew begins with the first message that is there. */
  consume(limits: ConsumerLimits): void {
    const stream = this;
    this.consumer = new Consumer(this.time, limits, {
      messages: this.messages,
      get firstSeq() {
        return stream.firstSeq;
      },
      get lastSeq() {
        return stream.lastSeq;
      },
      givenUp: this.advise,
    });
  }

  removeConsumer(): void {
    this.consumer?.end();
    this.consumer = undefined;
  }

  /** Whoever it is from. False where nobody answers it. */
  ack(seq: number): boolean {
    if (!this.consumer?.ack(seq)) return false;
    this.drop(seq, "acked");
    return true;
  }

  remove(seq: number): void {
    this.drop(seq, "removed");
    this.consumer?.removed(seq);
  }

  purge(): void {
    for (const seq of this.messages.keys()) this.drop(seq, "removed");
    this.consumer?.purged();
  }

  /**
   * The server is killed and comes back: the ids of messages that were acked are forgotten, and all ids where the newest
   * message is gone. What was acked stays acked.
   */
  restart(forgets: number): void {
    const isNewestThere = this.messages.has(this.lastSeq);
    for (const [id, { seq }] of this.window)
      if (!isNewestThere || !this.messages.has(seq)) this.window.delete(id);
    this.consumer?.restart(forgets);
  }

  /** The consumer was changed by hand. */
  change(limits: Partial<ConsumerLimits>): void {
    this.consumer?.change(limits);
  }

  private drop(seq: number, why: "acked" | "removed"): void {
    const message = this.messages.get(seq);
    if (!message) return;
    this.messages.delete(seq);
    this.bytes -= sizeOf(message);
    if (this.bySubject.get(message.subject) === seq) this.bySubject.delete(message.subject);
    this.left(this, message, why);
  }
}

function sizeOf({ subject, data, headers }: KeptMessage): number {
  let bytes = OVERHEAD + subject.length + data.length + "NATS/1.0\r\n\r\n".length;
  for (const [name, value] of headers) bytes += name.length + value.length + ": \r\n".length;
  return bytes;
}
