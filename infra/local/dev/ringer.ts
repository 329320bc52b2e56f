import { kindOf } from "../../build/targets.ts";

/** A little longer than the queue waits for whoever was cut off. */
const AFTER_ACK_WAIT = 500;

export interface Ringer extends Disposable {
  /** Wakes a function, without waiting for it. */
  ring(name: string): true;
  /** Wakes a function that has just started: for what waits, and for what was cut off when its ack_wait is over. */
  started(name: string, ackWait: number): void;
}

export function ringer(cron: (name: string) => Promise<void> | undefined): Ringer {
  const timers = new Set<NodeJS.Timeout>();
  let isOver = false;
  const ring = (name: string): true => {
    if (!isOver) void cron(name);
    return true;
  };
  return {
    ring,
    started: (name, ackWait) => {
      const kind = kindOf(name);
      // The API answers requests only, and a report is not due because something was rebuilt.
      if (kind !== "agent" && kind !== "dispatch") return;
      ring(name);
      const timer = setTimeout(() => {
        timers.delete(timer);
        ring(name);
      }, ackWait + AFTER_ACK_WAIT);
      timers.add(timer);
    },
    [Symbol.dispose]: () => {
      isOver = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
