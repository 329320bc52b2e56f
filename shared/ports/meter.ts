import type { Counter, Labels } from "../meter/counters.ts";

export interface Meter {
  count(counter: Counter, labels: Labels, by?: number): void;
  /** Adds what was counted so far to what is kept. Never throws: counts must not stop work. */
  flush(): Promise<void>;
}
