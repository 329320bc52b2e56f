import { shortHash } from "../../values/hashes.ts";
import {
  type Finding,
  type FindingCounts,
  type FindingName,
  type Findings,
  findingKinds,
} from "./findings.ts";
import type { FindingKind, Severity } from "./kind.ts";

/** Of each kind this many are kept by name; the rest are counted. */
export const MOST_NAMED = 100;
/** Of all kinds together, this many of the rest are known again by a hash. */
const MOST_HASHED = 10_000;
const LONGEST_DETAIL = 300;

export const NO_FINDINGS: Findings = { counts: {}, named: [] };

export const kindOf = (name: FindingName): FindingKind => findingKinds[name];
export const kindsIn = (counts: FindingCounts): FindingName[] => Object.keys(counts) as FindingName[];
const amountOf = ({ amount = 1 }: Finding) => amount;
export const amountIn = (some: readonly Finding[]) => some.reduce((sum, one) => sum + amountOf(one), 0);

export function found(findings: Findings, ...more: readonly Finding[]): Findings {
  const counts = { ...findings.counts };
  const named = [...findings.named];
  const unnamed: Record<string, readonly string[]> = { ...findings.unnamed };
  for (const finding of more) {
    const { kind, subject } = finding;
    const namesakes = named.filter((one) => one.kind === kind);
    if (namesakes.some((one) => one.subject === subject)) continue;
    if (namesakes.length < MOST_NAMED)
      named.push({ ...finding, detail: finding.detail.slice(0, LONGEST_DETAIL) });
    else if (kindOf(kind).nature === "happened") {
      const hash = shortHash(subject);
      const hashes = unnamed[kind] ?? [];
      // What is found of one subject is found in a row.
      if (hashes.at(-1) === hash) continue;
      // Every one that is added copies the list, and those past its end cost nothing.
      if (sizeOf(unnamed) < MOST_HASHED) unnamed[kind] = [...hashes, hash];
    }
    counts[kind] = (counts[kind] ?? 0) + amountOf(finding);
  }
  return { ...findings, counts, named, ...(sizeOf(unnamed) > 0 && { unnamed }) };
}

const sizeOf = (unnamed: NonNullable<Findings["unnamed"]>) =>
  Object.values(unnamed).reduce((sum, hashes) => sum + hashes.length, 0);

/**
 * A repair has mended one of them. One that is not named is only counted, as far as there are such; whoever says so says
 * it once.
 */
export function mended(findings: Findings, kind: FindingName, subject: string): Findings {
  const { counts, named, mended: before = {} } = findings;
  const namesakes = named.filter((one) => one.kind === kind);
  const it = namesakes.find((one) => one.subject === subject);
  const already = before[kind] ?? 0;
  const others = (counts[kind] ?? 0) - amountIn(namesakes);
  const othersMended = already - amountIn(namesakes.filter((one) => one.mended));
  if (it ? it.mended : othersMended >= others) return findings;
  return {
    ...findings,
    named: named.map((one) => (one === it ? { ...one, mended: true } : one)),
    mended: { ...before, [kind]: already + (it ? amountOf(it) : 1) },
  };
}

/** How many of a kind somebody has to do something about. */
export function leftOf({ counts, mended: done = {} }: Findings, kind: FindingName): number {
  const { severity } = kindOf(kind);
  if (severity === "note") return 0;
  return (counts[kind] ?? 0) - (severity === "look" ? (done[kind] ?? 0) : 0);
}

/** The same of all kinds, without those of which nothing is left. */
export function allLeft(findings: Findings): Record<string, number> {
  const counts = kindsIn(findings.counts).map((kind) => [kind, leftOf(findings, kind)] as const);
  return Object.fromEntries(counts.filter(([, left]) => left > 0));
}

const ORDER: readonly Severity[] = ["broken", "look", "note"];
const rank = (kind: FindingName) => ORDER.indexOf(kindOf(kind).severity);

/** The worst first, then by name: the same findings are always the same list. */
export function sorted(named: readonly Finding[]): Finding[] {
  const text = ({ kind, subject, detail }: Finding) => `${kind} ${subject} ${detail}`;
  return [...named].sort((a, b) => rank(a.kind) - rank(b.kind) || (text(a) < text(b) ? -1 : 1));
}

/** The kinds of what was found, the worst first, those that were mended after those that were not. */
export function kindsBySeverity(findings: Findings): FindingName[] {
  const isDone = (kind: FindingName) => Number(leftOf(findings, kind) === 0);
  return kindsIn(findings.counts)
    .filter((kind) => kind in findingKinds && (findings.counts[kind] ?? 0) > 0)
    .sort((a, b) => rank(a) - rank(b) || isDone(a) - isDone(b) || (a < b ? -1 : 1));
}

/** What two reconciliations of the same week or month found, the newer one second. */
export function foundTogether(a: Findings, b: Findings): Findings {
  const kinds = [...new Set([...kindsIn(a.counts), ...kindsIn(b.counts)])].filter(
    (one) => one in findingKinds,
  );
  const parts = kinds.map((kind) =>
    kindOf(kind).nature === "standing" ? only(b, kind) : bothOf(only(a, kind), only(b, kind), kind),
  );
  return parts.reduce(joined, NO_FINDINGS);
}

/** What is of one kind. */
function only({ counts, named, mended: done, unnamed }: Findings, kind: FindingName): Findings {
  const [count, hashes, fixed] = [counts[kind] ?? 0, unnamed?.[kind], done?.[kind]];
  return {
    counts: count > 0 ? { [kind]: count } : {},
    named: named.filter((one) => one.kind === kind),
    ...(fixed && { mended: { [kind]: fixed } }),
    ...(hashes && { unnamed: { [kind]: hashes } }),
  };
}

/**
 * Everything that happened, each subject once. A subject is known again by its name or its hash; those past the last
 * hash are added: rather too many than too few.
 */
function bothOf(a: Findings, b: Findings, kind: FindingName): Findings {
  const hashed = (findings: Findings) =>
    new Set([
      ...findings.named.map(({ subject }) => shortHash(subject)),
      ...(findings.unnamed?.[kind] ?? []),
    ]);
  const [before, since] = [hashed(a), hashed(b)];
  const isNew = ({ subject }: Finding) => !since.has(shortHash(subject));
  const all = sorted([...b.named, ...a.named.filter(isNew)]);
  const named = all.slice(0, MOST_NAMED);
  const shown = new Set(named.map(({ subject }) => shortHash(subject)));
  const unnamed = [...new Set([...before, ...since])].filter((hash) => !shown.has(hash));
  const amounts = new Map(a.named.map((one) => [shortHash(one.subject), amountOf(one)]));
  const again = [...before].reduce((sum, hash) => sum + (since.has(hash) ? (amounts.get(hash) ?? 1) : 0), 0);
  const count = (a.counts[kind] ?? 0) + (b.counts[kind] ?? 0) - again;
  const fixed = Math.min(count, (a.mended?.[kind] ?? 0) + (b.mended?.[kind] ?? 0));
  return {
    counts: { [kind]: count },
    named,
    ...(fixed > 0 && { mended: { [kind]: fixed } }),
    ...(unnamed.length > 0 && { unnamed: { [kind]: unnamed } }),
  };
}

/** Of different kinds. */
function joined(a: Findings, b: Findings): Findings {
  const fixed = { ...a.mended, ...b.mended };
  const room = MOST_HASHED - sizeOf(a.unnamed ?? {});
  const more = Object.entries(b.unnamed ?? {}).map(([kind, hashes]) => [kind, hashes.slice(0, room)]);
  const unnamed = { ...a.unnamed, ...Object.fromEntries(more) };
  return {
    counts: { ...a.counts, ...b.counts },
    named: sorted([...a.named, ...b.named]),
    ...(Object.keys(fixed).length > 0 && { mended: fixed }),
    ...(Object.keys(unnamed).length > 0 && { unnamed }),
  };
}
