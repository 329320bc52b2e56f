import type { Fault } from "./faults/disturb.ts";
import type { RegimeName } from "./faults/regimes.ts";
import type { Recovery } from "./figures.ts";
import type { Judgement, Wrong } from "./oracle/judge.ts";
import type { Beside, Explained } from "./oracle/reconciled.ts";

/** What came of one regime. Durations are milliseconds. */
export interface Result {
  readonly regime: RegimeName;
  readonly seed: string;
  readonly accepted: number;
  readonly begun: number;
  /** How long there were faults, and how long until all was over after the last. */
  readonly faultMs: number;
  readonly calmMs: number;
  readonly faults: readonly Fault[];
  readonly judgement: Judgement;
  readonly explained: Explained;
  /** Reconciliations in the middle of it. */
  readonly beside: Beside;
  readonly longestRecovery: Recovery;
  readonly respentTokens: number;
  /** Executions beyond one a task. */
  readonly restarts: number;
  /** Posts that came again under their key, which their receiver honours. */
  readonly keyed: number;
  /** Runners that ended because a server was away when they started. */
  readonly endedThemselves: number;
  /** The longest pause of whoever looked on. */
  readonly blinkMs: number;
  /** Where everything lies that is known about it, if something was wrong or somebody asked for it. */
  readonly evidence?: string;
}

/** What must be 0, each. */
export function verdictOf({ judgement, explained }: Result): Readonly<Record<string, number>> {
  const count = (kind: Wrong["kind"]) => judgement.wrong.filter((one) => one.kind === kind).length;
  return {
    lost: count("lost"),
    overlapped: count("overlapped"),
    repeated: count("repeated"),
    unexplained: explained.unexplained + explained.leftInQueues + count("doubt"),
    "false alarms": explained.falseAlarms.length,
  };
}

export function isRight(result: Result): boolean {
  return Object.values(verdictOf(result)).every((count) => count === 0);
}
