// biome-ignore-all lint/suspicious/noConsole: on these platforms the console is the log
import type { Log } from "../../shared/ports/log.ts";

const SEVERITY = { info: "INFO", warn: "WARNING", error: "ERROR" } as const;

/** One JSON object a line, as both platforms' logs take it apart. */
export function logOf(name: string): Log {
  return (level, event, fields = {}) => {
    const line = JSON.stringify({ severity: SEVERITY[level], event, function: name, ...fields });
    if (level === "info") console.log(line);
    else console.error(line);
  };
}
