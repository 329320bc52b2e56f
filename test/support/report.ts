import type { Report } from "../../shared/reconcile/figures/report.ts";
import { NO_TALLY, type Tally } from "../../shared/reconcile/figures/tally.ts";
import type { Finding, FindingName } from "../../shared/reconcile/findings/findings.ts";
import { NO_FINDINGS } from "../../shared/reconcile/findings/found.ts";

export const tally = (more: Partial<Tally>): Tally => ({ ...NO_TALLY, ...more });

/** Of a week in which three tasks of one agent were completed. */
export const report = (more: Partial<Report>): Report => ({
  v: 1,
  name: "2026-W46",
  namespace: "pawl",
  store: "Firestore p",
  span: { from: Date.parse("2026-11-09T06:00Z"), to: Date.parse("2026-11-16T06:00Z") },
  runs: 1,
  documents: 3,
  agents: { echo: tally({ classes: { ...NO_TALLY.classes, completed: 3 }, completed: 3, created: 3 }) },
  queues: [],
  live: { echo: { waiting: 2 } },
  findings: NO_FINDINGS,
  repairs: {},
  settings: [],
  operations: { reads: 10, writes: 9, readMs: 20, writeMs: 27 },
  trends: [{ name: "2026-W46", figures: { sequences: 3, usd: 0.3, wholeP95: 1_300 } }],
  writtenAt: 0,
  ...more,
});

export const finding = (kind: FindingName, subject: string, more: Partial<Finding> = {}): Finding => ({
  kind,
  subject,
  agent: "echo",
  detail: "",
  ...more,
});
/** Each about a task of its own, from this number on. */
export const many = (kind: FindingName, count: number, from = 0): Finding[] =>
  Array.from({ length: count }, (_, i) => finding(kind, `task-${from + i}`));
