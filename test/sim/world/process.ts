import type { Clock } from "../../../shared/ports/clock.ts";
import type { Random } from "./random.ts";
import type { Time } from "./time.ts";

/** What a process meets at one of its requests. */
export type Mishap =
  /** `late`: the request arrives so long after its death. */
  | { readonly kind: "dies"; readonly when: "before" | "after"; readonly late?: number }
  /** Stands still. `asleep`: the machine does, so that its clock that only grows stands still too. */
  | { readonly kind: "freezes"; readonly ms: number; readonly asleep: boolean }
  /** Is cut off from a server, or hears no answer of it. */
  | {
      readonly kind: "cut";
      readonly from: Server | "both";
      readonly ms: number;
      readonly loses: "requests" | "answers";
      /** It is not over when faults are: this runner never gets well, and others have to do its work. */
      readonly isForGood?: boolean;
    }
  /** The request takes so long to arrive: perhaps when nobody waits for its answer any more. */
  | { readonly kind: "late"; readonly ms: number }
  | { readonly kind: "unanswered" }
  /** The server certainly does not do it. */
  | { readonly kind: "refused" }
  /** The clock on the wall is set. */
  | { readonly kind: "set"; readonly ms: number }
  | { readonly kind: "told to stop" }
  /** It is left on the side of a leader that its peers have deposed, and that does not know it for so long. */
  | { readonly kind: "deposed"; readonly ms: number };

export type Server = "bus" | "store";

/** One life of a simulated process: it can die, stand still, and be cut off, and its clock is its own. */
export class Process {
  readonly name: string;
  readonly random: Random;
  readonly clock: Clock;
  readonly stop = new AbortController();
  isDead = false;
  /** Called when it dies. */
  died: () => void = () => {};
  /** Until when it is cut off, by server. */
  readonly cutUntil = { bus: 0, store: 0 };
  losesAnswers = false;
  isCutForGood = false;
  deposedAt: number | undefined;
  deposedUntil = 0;
  private readonly time: Time;
  private readonly mishapsAt: (what: string) => readonly Mishap[];
  private readonly told: (what: string) => void;
  private frozenUntil = 0;
  private slept = 0;
  private skew: number;
  /** Set whenever code of a process has run. */
  private readonly ran: () => void;

  constructor(given: {
    name: string;
    time: Time;
    random: Random;
    skew: number;
    /** What it meets as it sends this request. */
    mishapsAt: (what: string) => readonly Mishap[];
    ran: () => void;
    told: (what: string) => void;
  }) {
    this.name = given.name;
    this.time = given.time;
    this.random = given.random;
    this.skew = given.skew;
    this.mishapsAt = given.mishapsAt;
    this.ran = given.ran;
    this.told = given.told;
    const born = this.time.now;
    this.clock = {
      now: () => Math.floor(this.time.now + this.skew),
      monotonic: () => this.time.now - born - this.slept,
      sleep: (ms, signal) => this.sleep(ms, signal),
    };
  }

  meets(what: string): readonly Mishap[] {
    return this.mishapsAt(what);
  }

  die(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.told("dies");
    this.died();
  }

  freeze(ms: number, asleep: boolean): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.time.now + ms);
    if (asleep) this.slept += ms;
    this.told(`stands still for ${Math.round(ms)} ms${asleep ? ", with its machine" : ""}`);
  }

  setClock(ms: number): void {
    this.skew += ms;
    this.told(`has its clock set by ${Math.round(ms)} ms`);
  }

  isCutFrom(server: Server): boolean {
    return this.cutUntil[server] > this.time.now;
  }

  get isFrozen(): boolean {
    return this.frozenUntil > this.time.now;
  }

  /** Faults are over: it is as well as it can be, if it lives. */
  heal(): void {
    if (this.isCutForGood) return;
    this.cutUntil.bus = 0;
    this.cutUntil.store = 0;
    this.deposedUntil = 0;
  }

  /** Runs code in it now, or when it moves again; never if it is dead. */
  wake(run: () => void): void {
    if (this.isDead) return;
    if (this.isFrozen) {
      // What came meanwhile is found in no order that anyone promised.
      this.time.at(this.frozenUntil + this.random.next(), () => this.wake(run));
      return;
    }
    this.ran();
    run();
  }

  private sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted || !(ms > 0)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        withdraw();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const withdraw = this.time.at(this.time.now + ms, () => this.wake(done));
      signal?.addEventListener("abort", done);
    });
  }
}
