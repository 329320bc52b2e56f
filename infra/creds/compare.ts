import type { Identity } from "./plan.ts";

/** Subjects of one direction; without a list of those that are allowed, all are. */
interface Side {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
}

/** What a server lets one identity do inside its account. */
export interface Rights {
  readonly publish: Side;
  readonly subscribe: Side;
  /** It may publish to where it is asked to answer. */
  readonly answers: boolean;
}

/** In words: "publish to orders.>". */
export type Right = string;

/** How an identity's rights differ from what was planned for it. */
export interface RightsDrift {
  readonly identity: string;
  /** It may publish and subscribe to everything. */
  readonly mayAll: boolean;
  readonly wide: readonly Right[];
  readonly lacks: readonly Right[];
}

const ANSWER: Right = "answer what it is asked";

/**
 * What an identity may do beyond its plan, and what of the plan it may not. A right that is wider than its row of the plan
 * is named as the server has it, also where a denial takes all that is too much of it: the plan needs no such denials.
 */
export function compare(identity: Identity, { publish, subscribe, answers }: Rights): RightsDrift {
  const { name, answers: shouldAnswer } = identity;
  const sides = [
    ["publish to", publish, { allow: identity.publish, deny: identity.denied }],
    ["subscribe to", subscribe, { allow: identity.subscribe, deny: [] }],
  ] as const;
  const wide = sides.flatMap(([verb, has, plan]) => beyond(has, plan).map((one) => `${verb} ${one}`));
  const lacks = sides.flatMap(([verb, has, plan]) => beyond(plan, has).map((one) => `${verb} ${one}`));
  // Who may publish everything may answer, too.
  const canAnswer = answers || mayAll(publish);
  return {
    identity: name,
    mayAll: mayAll(publish) && mayAll(subscribe),
    wide: answers && !shouldAnswer ? [...wide, ANSWER] : wide,
    lacks: shouldAnswer && !canAnswer ? [...lacks, ANSWER] : lacks,
  };
}

const allowed = ({ allow }: Side): readonly string[] => allow ?? [">"];
const mayAll = (side: Side) => allowed(side).includes(">") && side.deny.length === 0;

/** What one side may and the other may not: subjects that it allows, and those that only the other denies. */
function beyond(one: Side, other: Side): string[] {
  const isIn = (subject: string, all: readonly string[]) => all.some((wide) => covers(wide, subject));
  const extra = allowed(one).filter((subject) => !isIn(subject, allowed(other)) && !isIn(subject, one.deny));
  const undenied = other.deny.filter(
    (subject) =>
      !isIn(subject, one.deny) &&
      allowed(one).some((mine) => meet(mine, subject)) &&
      // Said already, by the wider subject.
      !extra.some((mine) => covers(mine, subject)),
  );
  return [...extra, ...undenied];
}

/** Whether every subject of the second pattern is one of the first. A right may name a queue group after its subject. */
export function covers(wide: string, narrow: string): boolean {
  const [a, b] = [tokens(wide), tokens(narrow)];
  for (const [i, token] of a.entries()) {
    if (token === ">") return b.length > i;
    const mine = b[i];
    if (mine === undefined || mine === ">" || (token !== "*" && token !== mine)) return false;
  }
  return a.length === b.length;
}

/** Whether some subject is of both patterns. */
export function meet(one: string, other: string): boolean {
  const [a, b] = [tokens(one), tokens(other)];
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [x, y] = [a[i], b[i]];
    if (x === undefined || y === undefined) return false;
    if (x === ">" || y === ">") return true;
    if (x !== "*" && y !== "*" && x !== y) return false;
  }
  return true;
}

const tokens = (subject: string) => (subject.split(" ")[0] as string).split(".");
