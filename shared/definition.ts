import type { PawlError } from "./errors/errors.ts";
import { isAgentName } from "./task/names.ts";
import type { Schedule } from "./task/schedule.ts";

/** Lists of an agent's definition, checked and completed. */

/** What is thrown of a field that is wrong. */
export type Wrong = (field: string, value: unknown, should: string) => PawlError;

const MOST_SECRETS = 32;

/** Names of the variables that an agent may read. */
export function secretsOf(given: unknown, wrong: Wrong): readonly string[] {
  if (!Array.isArray(given) || given.length > MOST_SECRETS)
    throw wrong("secrets", given, `a list of ${MOST_SECRETS} names at most, such as ["JIRA_TOKEN"]`);
  for (const [i, name] of given.entries()) {
    if (typeof name !== "string" || !/^[A-Z][A-Z0-9_]{0,63}$/.test(name))
      throw wrong(`secrets[${i}]`, name, "a variable's name: a letter, then A-Z 0-9 _ (64 at most)");
    if (name.startsWith("PAWL_")) throw wrong(`secrets[${i}]`, name, "another name: PAWL_… is Pawl's own");
    if (given.indexOf(name) !== i) throw wrong(`secrets[${i}]`, name, "named once: it is there already");
  }
  return Object.freeze([...given] as string[]);
}

/** Names of the agents whose tasks it submits. */
export function childNamesOf(given: unknown, wrong: Wrong): readonly string[] {
  if (!Array.isArray(given)) throw wrong("children", given, 'a list of agents\' names, such as ["digest"]');
  for (const [i, name] of given.entries())
    if (typeof name !== "string" || !isAgentName(name))
      throw wrong(`children[${i}]`, name, "an agent's name: a letter, then a-z 0-9 - (63 at most)");
  return Object.freeze([...new Set(given as string[])]);
}

/**
 * An agent and its relatives: whose tasks it submits, and who submits its tasks, which it wakes when they are over. An
 * identity of its own has to reach these, and no others.
 */
export function familyOf(
  name: string,
  known: readonly { readonly name: string; readonly children: readonly string[] }[],
): readonly string[] {
  const children = known.find((one) => one.name === name)?.children ?? [];
  const parents = known.filter((one) => one.children.includes(name)).map((one) => one.name);
  return [...new Set([name, ...children, ...parents])];
}

/** When its tasks come by themselves. */
export function schedulesOf(given: unknown, wrong: Wrong): readonly Schedule[] {
  if (!Array.isArray(given)) throw wrong("schedules", given, 'a list, such as [{ cron: "0 6 * * 1" }]');
  const schedules = given.map((one: Partial<Schedule> | undefined): Schedule => {
    const { cron, name = "main", timezone = "UTC", input = {} } = one ?? {};
    if (typeof cron !== "string") throw wrong("schedules.cron", cron, 'five fields, such as "0 6 * * 1"');
    if (typeof name !== "string" || !/^[a-z0-9-]{1,32}$/.test(name))
      throw wrong("schedules.name", name, "1 to 32 of a-z 0-9 -");
    if (typeof timezone !== "string") throw wrong("schedules.timezone", timezone, '"Europe/Vienna", say');
    return { cron, name, timezone, input };
  });
  const names = schedules.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice) throw wrong("schedules.name", twice, "another one: there are two of this name");
  return schedules;
}
