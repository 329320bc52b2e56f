/** What a figure must keep to: its ratio to what it is measured against, or, with `value`, the figure itself. */
export type Limit = { readonly least: number } | { readonly most: number };

/** One figure of a bench: what Pawl did in each round, and what it is measured against did in the same round. */
export interface Figure {
  readonly what: string;
  readonly unit: "/s" | "ms" | "µs" | "MB" | "%" | "/min";
  readonly pawl: readonly number[];
  readonly against?: { readonly name: string; readonly values: readonly number[] };
  /** Of the ratio; none where it is only printed. */
  readonly required?: Limit;
  /** Of the figure itself, in its unit, where nothing is measured beside it. */
  readonly bound?: Limit;
}

/** What a bench is given. */
export interface Stage {
  readonly rounds: number;
  readonly isLarge: boolean;
  readonly hasPeers: boolean;
  /** Aborted by Ctrl-C. */
  readonly stop: AbortSignal;
  /** A size, scaled down where somebody only tries a bench. */
  size(full: number, least?: number): number;
  /** For a person who watches. */
  tell(doing: string): void;
}

/** Thrown where a bench can't be run here: the reason, with what to do. */
export class NotHere extends Error {
  override readonly name = "NotHere";
}

export interface Bench {
  /** What is done. */
  readonly what: string;
  /** What it is measured against. */
  readonly floor: string;
  /** As docs and tables say it; what is judged is in its figures. */
  readonly required: string;
  run(stage: Stage): Promise<readonly Figure[]>;
}
