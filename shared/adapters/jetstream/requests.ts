import { createInbox, type Msg, type MsgHdrs, type NatsConnection, TimeoutError } from "@nats-io/nats-core";
import { NotThere } from "./nats-errors.ts";

/** What a request is sent with. */
export interface Question {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly headers?: MsgHdrs;
}

/** Requests that are under way over one connection. */
export interface Requests {
  /** Rejects when nobody answers in time, or nobody is there to answer. */
  ask(question: Question): Promise<Msg>;
  /** Tells whoever waits for an answer of its own from there that none can come, until the returned function is called. */
  watch(subject: string, fail: (error: Error) => void): () => void;
  /** None of those under way can be answered any more. */
  fail(error: Error): void;
  /** The server says that we may not publish there. */
  refused(subject: string, error: Error): void;
}

interface Waiting {
  readonly subject: string;
  readonly until: number;
  resolve(answer: Msg): void;
  reject(error: unknown): void;
}

/**
 * All answers come to one inbox, which is subscribed to with the first request, and one timer serves all: they have the
 * same time, so the oldest is over first. The client's own requests make an error and two timers of each that succeeds.
 */
export function natsRequests(nc: NatsConnection, timeout: number): Requests {
  const waiting = new Map<string, Waiting>();
  const watched = new Set<{ readonly subject: string; readonly fail: (error: Error) => void }>();
  let inbox = "";
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const take = (token: string): Waiting | undefined => {
    const one = waiting.get(token);
    waiting.delete(token);
    return one;
  };
  const failAll = (error: unknown) => {
    const all = [...waiting.values()];
    waiting.clear();
    for (const one of all) one.reject(error);
  };
  const answered = (error: Error | null, answer: Msg) => {
    // Only the right to subscribe can be missing; it may be there the next time. What was asked may have been done.
    if (error) {
      inbox = "";
      return failAll(
        new Error(`NATS lets this user hear no answers (${error.message}): what was asked may be done`),
      );
    }
    const one = take(answer.subject.slice(inbox.length));
    if (!one) return;
    if (isNobody(answer)) one.reject(new NotThere(one.subject));
    else one.resolve(answer);
  };
  const subscribed = (): string => {
    if (inbox !== "") return inbox;
    inbox = `${inboxOf(nc)}.`;
    nc.subscribe(`${inbox}*`, { callback: answered });
    return inbox;
  };
  const expire = () => {
    timer = undefined;
    const now = performance.now();
    for (const [token, one] of waiting) {
      if (one.until > now) return arm(one.until - now);
      waiting.delete(token);
      one.reject(new TimeoutError());
    }
  };
  const arm = (ms: number) => {
    timer ??= setTimeout(expire, ms);
  };

  return {
    ask: ({ subject, data, headers }) =>
      new Promise((resolve, reject) => {
        const reply = subscribed();
        const token = (asked++).toString(36);
        nc.publish(subject, data, { reply: reply + token, ...(headers && { headers }) });
        waiting.set(token, { subject, until: performance.now() + timeout, resolve, reject });
        arm(timeout);
      }),
    watch: (subject, fail) => {
      const one = { subject, fail };
      watched.add(one);
      return () => void watched.delete(one);
    },
    fail: (error) => {
      clearTimeout(timer);
      timer = undefined;
      failAll(error);
      for (const { fail } of [...watched]) fail(error);
    },
    refused: (subject, error) => {
      for (const [token, one] of waiting) if (one.subject === subject) take(token)?.reject(error);
      for (const one of [...watched]) if (one.subject === subject) one.fail(error);
    },
  };
}

/** Headers whose values are ours, which the client's own would look through one by one. */
export function plainHeaders(fields: Readonly<Record<string, string>>): MsgHdrs {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const bytes = new TextEncoder().encode(`NATS/1.0\r\n${lines.join("")}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
}

/** The server's word that nobody listens to a subject that was asked for an answer. */
export function isNobody(answer: Msg): boolean {
  return answer.data.length === 0 && headersOf(answer)?.code === 503;
}

/** A message's headers; none where they can't be read: other clients send what this one calls malformed. */
export function headersOf(message: Msg): MsgHdrs | undefined {
  try {
    return message.headers;
  } catch {
    return undefined;
  }
}

/** A new inbox, below the prefix that this connection was given: its user may have the right to that one only. */
export function inboxOf(nc: NatsConnection): string {
  // The client keeps it to itself.
  return createInbox((nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix);
}
