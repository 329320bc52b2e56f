import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { Time } from "./time.ts";

/** What effects are done to: it knows what has really happened, however little its callers do. */
export class Outside {
  /** How often each key's effect has happened. */
  readonly happened = new Map<string, number>();
  /** Requests that have been sent and have not arrived, by task. */
  private readonly underWay = new Map<string, number>();
  private readonly time: Time;
  private readonly random: Random;
  private readonly done: (taskId: string, key: string, times: number) => void;

  constructor(time: Time, random: Random, done: (taskId: string, key: string, times: number) => void) {
    this.time = time;
    this.random = random;
    this.done = done;
  }

  /** The request arrives and is done even if its sender dies meanwhile. Once for each key where keys are honoured. */
  perform(process: Process, taskId: string, key: string, honoursKey: boolean): Promise<string> {
    const { time } = this;
    this.underWay.set(taskId, (this.underWay.get(taskId) ?? 0) + 1);
    return new Promise((resolve) => {
      time.at(time.now + this.travel(), () => {
        this.underWay.set(taskId, (this.underWay.get(taskId) ?? 1) - 1);
        const times = this.happened.get(key) ?? 0;
        if (times === 0 || !honoursKey) {
          this.happened.set(key, times + 1);
          this.done(taskId, key, times + 1);
        }
        time.at(time.now + this.delay(), () => process.wake(() => resolve(`receipt ${key}`)));
      });
    });
  }

  look(process: Process, key: string): Promise<string | undefined> {
    const { time } = this;
    return new Promise((resolve) => {
      time.at(time.now + this.delay(), () => {
        const found = this.happened.has(key) ? `receipt ${key}` : undefined;
        time.at(time.now + this.delay(), () => process.wake(() => resolve(found)));
      });
    });
  }

  /** Whether all that was sent for a task has arrived. */
  isQuiet(taskId: string): boolean {
    return (this.underWay.get(taskId) ?? 0) === 0;
  }

  /** Some requests are held up on their way until long after whoever sent them has given up, or died. */
  private travel(): number {
    return this.random.chance(0.1) ? this.random.between(20_000, 100_000) : this.delay();
  }

  /** Mostly short; now and then a request takes its time. */
  private delay(): number {
    return this.random.chance(0.1) ? this.random.between(500, 4_000) : this.random.between(1, 50);
  }
}
