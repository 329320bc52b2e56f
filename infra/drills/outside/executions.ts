/** A line that a handler wrote about itself. */
export interface Note {
  readonly at: number;
  readonly id: string;
  readonly run: string;
  readonly pid: number;
  /** An "aborted" is no deed: the handler only noticed that it must not go on. */
  readonly what: "start" | "act" | "end" | "aborted";
}

export interface Execution {
  readonly id: string;
  readonly start: number;
  /** When it last did anything. */
  readonly end: number;
  readonly notes: readonly Note[];
}

/** Executions by the handlers' own account. */
export function executions(all: readonly Note[]): Execution[] {
  return [...Map.groupBy(all, (note) => note.run).values()].flatMap((notes) => {
    const deeds = notes.filter((note) => note.what !== "aborted").map((note) => note.at);
    const id = notes[0]?.id as string;
    return deeds.length ? [{ id, start: Math.min(...deeds), end: Math.max(...deeds), notes }] : [];
  });
}

/** Pairs of executions of one task of which the second began before the first had done its last deed. */
export function overlaps(of: readonly Execution[]): Execution[][] {
  const byTask = Map.groupBy(of, (one) => one.id);
  return [...byTask.values()].flatMap((list) => {
    const sorted = list.toSorted((a, b) => a.start - b.start);
    return sorted.flatMap((one, i) => {
      const next = sorted[i + 1];
      return next && next.start < one.end ? [[one, next]] : [];
    });
  });
}
