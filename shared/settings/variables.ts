import { messageOf, PawlError } from "../errors/errors.ts";
import { functionVariables } from "./functions.ts";
import { protocolVariables } from "./protocol.ts";
import { serverVariables } from "./servers.ts";
import { telemetryVariables } from "./telemetry.ts";
import { deployVariables, localVariables } from "./tools.ts";
import type { Env, Variable } from "./variable.ts";

/** Every environment variable that Pawl reads, with all that there is to say of it. docs/settings.md is printed from it. */
export const variables = {
  ...serverVariables,
  ...functionVariables,
  ...protocolVariables,
  ...telemetryVariables,
  ...deployVariables,
  ...localVariables,
} as const;

export type VariableName = keyof typeof variables;
type Value<N extends VariableName> = Exclude<ReturnType<(typeof variables)[N]["read"]>, undefined>;

/** What is set, in its own form. */
export type Given = { readonly [N in VariableName]?: Value<N> };

/** The fields that variables set by themselves, and what they are. */
export type FieldsSet = {
  readonly [N in VariableName as (typeof variables)[N] extends { sets: infer S extends string }
    ? S
    : never]: Value<N>;
};

const table: Readonly<Record<string, Variable>> = variables;

/** Names and rows, in the order of the table. */
export const rows = Object.entries(table) as readonly [VariableName, Variable][];

export interface Reading {
  readonly given: Given;
  /** All that is wrong, each with what to do. Contradictions between variables are found later. */
  readonly problems: readonly string[];
  /** Set, and not of their form: they are not missing, and contradict nothing. */
  readonly malformed: ReadonlySet<VariableName>;
}

/** The whole environment, read once. Throws nothing: some of it may be needed to know who may be told what is wrong. */
export function readVariables(env: Env): Reading {
  const problems = Object.keys(env)
    .filter((name) => name.startsWith("PAWL_") && !(name in table))
    .map((name) => `${name} is not a setting of Pawl. Check its spelling against docs/settings.md`);
  const given: Record<string, unknown> = {};
  const malformed = new Set<VariableName>();
  for (const [name, row] of rows) {
    const text = env[name];
    if (text) {
      const { value, problem } = valueIn(name, row, text);
      if (value === undefined) malformed.add(name);
      else given[name] = value;
      if (problem !== undefined) problems.push(problem);
    } else if (row.required !== undefined) problems.push(`${name} is not set. ${row.required}`);
  }
  return { given: given as Given, problems, malformed };
}

/** One variable, for tools that need no others. */
export function readVariable<N extends VariableName>(env: Env, name: N): Value<N> | undefined {
  const text = env[name];
  if (!text) return undefined;
  const { value, problem } = valueIn(name, table[name] as Variable, text);
  if (problem !== undefined) throw new PawlError("setting_invalid", problem);
  return value as Value<N>;
}

/** What holds where it is not set. */
export function defaultOf<N extends VariableName>(name: N): Value<N> {
  const { read, default: text = "" } = table[name] as Variable;
  return read(text) as Value<N>;
}

/** A variable that is of its form and wrong all the same has a value and a problem. */
function valueIn(
  name: string,
  { read, wrong, form, secret }: Variable,
  text: string,
): { readonly value?: unknown; readonly problem?: string | undefined } {
  try {
    const value = read(text);
    if (value !== undefined) return { value, problem: wrong?.(text) };
    // Beside an @ there may be a password, and which side of it is whose nobody knows in what is not well-formed.
    const isShown = !secret && !text.includes("@");
    const is = isShown ? `is ${JSON.stringify(text)}` : "is not well-formed";
    return { problem: `${name} ${is}; it should be ${form}` };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
