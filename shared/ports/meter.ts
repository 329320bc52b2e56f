import type { Counter, LabelsOf } from "../meter/counters.ts";

export interface Meter {
  count<C extends Counter>(counter: C, labels: LabelsOf<C>, by?: number): void;
  /** Dollars that a task of this agent, and of this owner, has spent: kept by the day, for quotas. */
  spent?(of: { readonly agent: string; readonly owner?: string | undefined }, usd: number): void;
  /** Adds what was counted so far to what is kept. Never throws: counts must not stop work. */
  flush(): Promise<void>;
}
