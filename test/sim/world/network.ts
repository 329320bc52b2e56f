import { PawlError } from "../../../shared/errors/errors.ts";
import type { Mishap, Process, Server } from "./process.ts";
import type { Time } from "./time.ts";

/** A request under way: what the server does with it, and for how long its sender waits. */
export interface Request<T> {
  readonly to: Server;
  readonly what: string;
  /** At the server, in one moment. A promise's value is taken when the answer arrives. */
  readonly act: () => T | Promise<T> | typeof UNANSWERED;
  /** What a leader answers that was deposed and does not know it; without this it can't do anything. */
  readonly deposed?: (since: number) => T | Promise<T>;
}

/** What `act` returns where the server says nothing. */
export const UNANSWERED = Symbol("unanswered");

const CODES = { bus: "bus_unavailable", store: "store_unavailable" } as const;
const REFUSED = { bus: "bus_refused", store: "store_refused" } as const;

/** Carries requests to servers and answers back, or does not, as the seed and the processes' mishaps say. */
export class Network {
  /** How many of a hundred requests, and how many of a hundred answers, are lost for no reason. */
  losses = 0;
  readonly isUp: Record<Server, boolean> = { bus: true, store: true };
  readonly counts = new Map<string, number>();
  private readonly time: Time;
  private readonly timeout: number;
  private readonly told: (process: Process, what: string) => void;

  constructor(time: Time, timeout: number, told: (process: Process, what: string) => void) {
    this.time = time;
    this.timeout = timeout;
    this.told = told;
  }

  ask<T>(process: Process, request: Request<T>): Promise<T> {
    if (process.isDead) return new Promise(() => {});
    const { to, what, act } = request;
    const { time } = this;
    const fate = this.fateOf(process, request.to, process.meets(what), what);
    if (fate.isUnsent) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      let isOver = false;
      /** Only the first answer is heard, and after it nobody waits any more. */
      const give = (ms: number, run: () => void) =>
        time.at(time.now + ms, () => {
          if (isOver) return;
          process.wake(() => {
            if (isOver) return;
            isOver = true;
            giveUp();
            run();
          });
        });
      const fail = (code: "unavailable" | "refused") => {
        const why = code === "refused" ? "refused" : "no answer";
        reject(new PawlError(code === "refused" ? REFUSED[to] : CODES[to], `${what}: ${why}`));
      };
      const giveUp = give(this.timeout, () => fail("unavailable"));
      if (fate.isRefused) {
        give(fate.there, () => fail("refused"));
        return;
      }
      time.at(time.now + fate.there, () => {
        const isDown = !this.isUp[to];
        const isDeposed = process.deposedUntil > time.now;
        if (isDown || fate.isLost || (isDeposed && !request.deposed)) {
          if (fate.isFatal) process.die();
          // A connection that is known to be broken fails at once; the other kind is silent.
          if (fate.isSwift) give(fate.back, () => fail("unavailable"));
          return;
        }
        let answer: T | Promise<T> | typeof UNANSWERED;
        try {
          answer = isDeposed && request.deposed ? request.deposed(process.deposedAt ?? time.now) : act();
        } catch (error) {
          give(fate.back, () => reject(error));
          return;
        }
        if (answer instanceof Promise) answer.catch(() => {});
        if (fate.isFatal) process.die();
        if (fate.isFatal || answer === UNANSWERED) return;
        const heard = answer;
        if (!fate.isUnanswered && !(process.losesAnswers && process.isCutFrom(to)))
          give(fate.back, () => resolve(heard));
      });
    });
  }

  private fateOf(process: Process, to: Server, mishaps: readonly Mishap[], what: string) {
    const { random } = process;
    let there = random.between(0.2, 3);
    const back = random.between(0.2, 3);
    let isLost = random.chance(this.losses);
    let isUnanswered = random.chance(this.losses);
    let isFatal = false;
    let isRefused = false;
    let isUnsent = false;
    const isSwift = random.chance(0.5);
    for (const mishap of mishaps) {
      this.counts.set(mishap.kind, (this.counts.get(mishap.kind) ?? 0) + 1);
      this.told(process, `${what}: ${mishap.kind}`);
      switch (mishap.kind) {
        case "dies":
          if (mishap.when === "before" || mishap.late !== undefined) process.die();
          else isFatal = true;
          there += mishap.late ?? 0;
          // What is on its way arrives; the rest was never sent.
          isUnsent = mishap.when === "before";
          break;
        case "freezes":
          process.freeze(mishap.ms, mishap.asleep);
          break;
        case "cut":
          for (const server of mishap.from === "both" ? (["bus", "store"] as const) : [mishap.from])
            process.cutUntil[server] = mishap.isForGood
              ? Number.POSITIVE_INFINITY
              : this.time.now + mishap.ms;
          process.isCutForGood = mishap.isForGood === true;
          process.losesAnswers = mishap.loses === "answers";
          break;
        case "late":
          there += mishap.ms;
          break;
        case "unanswered":
          isUnanswered = true;
          break;
        case "refused":
          isRefused = true;
          break;
        case "set":
          process.setClock(mishap.ms);
          break;
        case "told to stop":
          process.stop.abort(new Error("told to stop"));
          break;
        case "deposed":
          process.deposedAt = this.time.now;
          process.deposedUntil = this.time.now + mishap.ms;
          break;
        default:
          mishap satisfies never;
      }
    }
    if (process.isCutFrom(to) && !process.losesAnswers) isLost = true;
    return { there, back, isUnsent, isLost, isUnanswered, isFatal, isRefused, isSwift };
  }
}
