import type { Clock } from "../ports/clock.ts";
import type { Log, LogFields, LogLevel } from "../ports/log.ts";
import { showDuration } from "../values/duration.ts";

/** How often what lasts is said again. */
const AGAIN = 15_000;
/** What lasts so long is no hiccup. */
const GRAVE = 30_000;

/** Something that goes wrong for a while. */
export interface Trouble {
  /**
   * It goes wrong, still. Said the first time, when there is news, and every 15 s, with for how long already; as an error
   * after 30 s.
   */
  met(
    event: string,
    fields: LogFields,
    more?: { readonly level?: LogLevel; readonly isNews?: boolean },
  ): void;
  /** Not any more: said with how long it took, if there was any. */
  over(event: string, fields?: LogFields): void;
}

export function trouble(deps: { readonly clock: Pick<Clock, "monotonic">; readonly log: Log }): Trouble {
  const { clock, log } = deps;
  let begun: number | undefined;
  let said = 0;
  const lasted = (since: number) => Math.round((clock.monotonic() - since) / 1_000) * 1_000;
  return {
    met: (event, fields, { level = "warn", isNews = false } = {}) => {
      const now = clock.monotonic();
      // A timer may be a little early.
      if (begun !== undefined && !isNews && now - said < AGAIN - 100) return;
      begun ??= now;
      said = now;
      const ms = lasted(begun);
      log(ms >= GRAVE ? "error" : level, event, { ...fields, ...(ms > 0 && { for: showDuration(ms) }) });
    },
    over: (event, fields) => {
      if (begun !== undefined) log("info", event, { ...fields, after: showDuration(lasted(begun)) });
      begun = undefined;
    },
  };
}
