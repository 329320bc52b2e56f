import type { ExportedJournal } from "./exported.ts";
import type { Difference, Replay } from "./replay.ts";

/** What a replay showed, for people. */
export function replayLines({ task, entries, redacted }: ExportedJournal, replay: Replay): string[] {
  const count = `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
  const without = redacted ? `, without ${redacted.join(", ")}: prompts and results are not compared` : "";
  const calls = replay.calls.map(
    ({ call, would }) =>
      `  ${would === undefined ? "journal" : "HERE   "}  ${call}${would === undefined ? "" : `: it would ${would}`}`,
  );
  return [
    `${task.id} of ${task.agent}: ${task.state}, ${count}${without}`,
    ...calls,
    endLine(replay),
    ...differenceLines(replay.differences),
  ];
}

function endLine({ ends, error, calls }: Replay): string {
  const why = error ? ` ${error.code}: ${error.message}` : "";
  switch (ends) {
    case "returns":
      return "it returns. Nothing was done";
    case "throws":
      return `it throws${why}. Nothing was done`;
    case "refused":
      return `it does not begin:${why || " there is no such agent"}`;
    case "hangs":
      return "its own code does not go on in time. Nothing was done by its calls";
    case "stops": {
      const stops = calls.filter(({ would }) => would !== undefined);
      return `it stops here, at ${stops.map(({ call }) => call).join(", ") || "what is in doubt"}. Nothing was done`;
    }
    default:
      return ends satisfies never;
  }
}

/** The first difference, and how many there are. */
export function differenceLines(differences: readonly Difference[]): string[] {
  const [first, ...more] = differences;
  if (!first) return [];
  const others = more.length > 0 ? [`  and ${more.length} more`] : [];
  return [`DIFFERENT (${first.kind}): ${first.message}`, ...others];
}
