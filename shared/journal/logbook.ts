import type { Clock } from "../ports/clock.ts";
import type { LogLevel } from "../ports/log.ts";
import type { Running } from "../task/document.ts";
import type { Head } from "./entries.ts";
import { joined, LOGS_KEPT, LOGS_ON_HEAD, type Logs, lineText, within } from "./logs.ts";

/**
 * The lines of a task's handlers, on their way to its document: each write that is made anyway carries them along, an
 * entry of the journal or the last word of an execution, and none is made for them. What was logged since the last such
 * write is lost with its process.
 */
export interface Logbook {
  note(text: string, level: LogLevel): void;
  /** The head with what the document does not have yet. */
  onHead(head: Head): Head;
  /** For the document. */
  logs(): { logs?: Logs };
}

export function logbook(
  { id, fence, logs: stored }: Pick<Running, "id" | "fence" | "logs">,
  before: Logs | undefined,
  clock: Pick<Clock, "now">,
): Logbook {
  const known = stored?.count ?? 0;
  let logs = joined(stored, before);
  return {
    note: (text, level) => {
      const line = { at: clock.now(), fence, ...(level !== "info" && { level }), text: lineText(text) };
      logs = within({ count: (logs?.count ?? 0) + 1, lines: [...(logs?.lines ?? []), line] }, LOGS_KEPT);
    },
    onHead: (head) => {
      const { logs: _, ...rest } = head;
      const news = (logs?.count ?? 0) - known;
      if (head.taskId !== id || !logs || news <= 0) return rest;
      return { ...rest, logs: within({ ...logs, lines: logs.lines.slice(-news) }, LOGS_ON_HEAD) };
    },
    logs: () => (logs ? { logs } : {}),
  };
}
