import type { Finding, RuleText } from "./rule.ts";

export interface Examined {
  readonly findings: readonly Finding[];
  /** What was looked at, by name. */
  readonly examined: readonly string[];
  /** What could not be looked at, because nobody said it, or it can't be seen from here. */
  readonly unseen: readonly string[];
}

/** Without the links that docs have. */
export const plain = (text: string) =>
  text.replaceAll(/ ?\(\[[^\]]+\]\([^)]+\)\)/g, "").replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "docs/$1");

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** For people: each finding with what is, what that leads to, and what to set. */
export function saidLines(
  { findings, examined, unseen }: Examined,
  rules: Readonly<Record<string, RuleText>>,
): string[] {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const lines = findings.flatMap(({ rule, severity, subject, is, set, refused }) => [
    `${severity === "error" ? "ERROR  " : "warning"}  ${subject}: ${is}`,
    `           ${rule}${refused ? ` (nats-server: ${refused})` : ""}: ${plain(rules[rule]?.prevents ?? "")}`,
    `           set  ${set}`,
  ]);
  const verdict =
    findings.length === 0
      ? `nothing found: ${examined.join(", ")}`
      : `${count(errors, "error")}, ${count(findings.length - errors, "warning")}: ${examined.join(", ")}`;
  return [...lines, verdict, ...(unseen.length > 0 ? [`not looked at: ${unseen.join(", ")}`] : [])];
}

export const ruleLines = (rules: Readonly<Record<string, RuleText>>): string[] =>
  Object.entries(rules).flatMap(([id, { severity, checks, prevents, mend }]) => [
    `${id}  (${severity})`,
    `  looks at  ${plain(checks)}`,
    `  prevents  ${plain(prevents)}`,
    `  mend      ${plain(mend)}`,
  ]);
