import * as z from "zod";
import type { JsonObject } from "../../values/json.ts";
import type { WebAgent } from "../context.ts";
import { validate } from "../validate.ts";

/** Throws what is wrong with an input. */
export type InputCheck = (input: JsonObject) => Promise<void>;

/**
 * The agent's own schema decides. Where it can't be asked, what is surely wrong is refused all the same, and the schema has
 * the last word when the task runs.
 */
export function inputCheck(agent: WebAgent): InputCheck {
  const bounds = boundsOf(agent);
  return async (input) => {
    const accepted = await agent.accepts?.(input);
    if (!accepted) validate(bounds, input, "The input");
    else if ("problem" in accepted) throw accepted.problem;
  };
}

function boundsOf({ inputBounds }: WebAgent): z.ZodType {
  if (!inputBounds) return z.unknown();
  try {
    return z.fromJSONSchema(inputBounds as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return z.unknown();
  }
}
