/** How many tasks are queued, how many are handled at once, and how many journaled steps each has. */
export interface Work {
  readonly tasks: number;
  readonly lanes: number;
  readonly steps: number;
}

/** Another system, opened for a whole bench: its servers run, and nothing of it works between two rounds. */
export interface Peer extends AsyncDisposable {
  /** Tasks a second, from the start of the workers on; they were queued before. */
  rate(work: Work): Promise<number>;
}
