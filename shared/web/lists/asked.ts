import type { State } from "../../task/document.ts";
import { queries } from "../api/schemas.ts";
import { pageAt } from "../frame/session.ts";
import { validate } from "../validate.ts";

export interface List {
  readonly path: string;
  readonly title: string;
  readonly only?: State;
}

export const lists: readonly List[] = [
  { path: "/tasks", title: "Tasks" },
  { path: "/dead-letters", title: "Dead letters", only: "failed" },
];

/** What was asked for, in words of the address. */
export interface Asked {
  readonly q?: string;
  readonly agent?: string;
  readonly state?: State;
  readonly owner?: string;
  readonly error?: string;
  readonly label?: string;
  readonly cursor?: string;
}

export function askedIn(fields: Readonly<Record<string, string>>, { only }: List): Asked {
  // A form sends its empty fields too.
  const { q, ...given } = Object.fromEntries(
    Object.entries(fields)
      .map(([name, value]) => [name, value.trim()] as const)
      .filter(([, value]) => value !== ""),
  );
  const query = validate(only ? queries.deadLetters : queries.list, given, "The address") as Asked;
  return { ...query, ...(only && { state: only }), ...(q !== undefined && { q: q.slice(0, 200) }) };
}

/** What a list of this address was asked for, whichever of its pages it is. */
export function filterAt(address: string | null): Asked {
  const { pathname, searchParams } = new URL(pageAt(address), "http://pawl.invalid");
  const list = lists.find(({ path }) => pathname === `/ui${path}`) ?? (lists[0] as List);
  for (const paging of ["cursor", "limit"]) searchParams.delete(paging);
  return askedIn(Object.fromEntries(searchParams), list);
}
