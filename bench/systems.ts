/** How many tasks are queued, how many are handled at once, and how many journaled steps each has. */
export interface Work {
  readonly tasks: number;
  readonly lanes: number;
  readonly steps: number;
}

/** Work that is done: how fast, and what it took of the processors in this process, the servers' part not counted. */
export interface Done {
  /** Tasks a second. */
  readonly rate: number;
  /** Microseconds a task. */
  readonly cpu: number;
}

export const done = (tasks: number, { ms, cpu }: { readonly ms: number; readonly cpu: number }): Done => ({
  rate: (1_000 * tasks) / ms,
  cpu: (1_000 * cpu) / tasks,
});

/** Another system, opened for a whole bench: its servers run, and nothing of it works between two rounds. */
export interface Peer extends AsyncDisposable {
  /** Tasks a second, from the start of the workers on; they were queued before. */
  rate(work: Work): Promise<number>;
}
