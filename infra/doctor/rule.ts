export type Severity = "error" | "warning";

/** What a rule found, with its value, and the value to set. */
export interface Found {
  /** Such as consumer.ack_wait. */
  readonly field: string;
  readonly is: string;
  readonly set: string;
  /** Where it is less than the rule says, because something else holds, or not all is known. */
  readonly severity?: "warning";
  /** nats-server refuses it, with this code. */
  readonly refused?: number;
}

/** Docs and `pawl doctor --rules` are printed from its words. */
export interface RuleText {
  readonly checks: string;
  /** What happens otherwise. */
  readonly prevents: string;
  readonly severity: Severity;
  readonly mend: string;
}

export interface Rule<Subject> extends RuleText {
  readonly find: (subject: Subject) => Found | readonly Found[] | undefined;
}

export interface Finding extends Omit<Found, "severity"> {
  readonly rule: string;
  readonly severity: Severity;
  /** Which stream, consumer, or what else it is about. */
  readonly subject: string;
}

/** All that the rules of a table find, what is an error first. */
export function findings<Subject>(
  rules: Readonly<Record<string, Rule<Subject>>>,
  subject: Subject,
  name: string,
): Finding[] {
  const all = Object.entries(rules).flatMap(([rule, { severity, find }]) =>
    [find(subject) ?? []].flat().map((found) => ({ severity, ...found, rule, subject: name })),
  );
  return all.sort((a, b) => Number(b.severity === "error") - Number(a.severity === "error"));
}
