import type * as z from "zod";
import { pauseAgent, resumeAgent } from "../../audit/operations.ts";
import { mayUse } from "../authorize.ts";
import type { Request, WebAgent } from "../context.ts";
import { problem } from "../problem.ts";
import type { bodies } from "./schemas.ts";

interface Asked {
  readonly agents: readonly WebAgent[];
  readonly params: { readonly agent: string };
}

export async function pauseByApi(
  c: Request,
  { agents, params: { agent }, body: { why } }: Asked & { readonly body: z.infer<typeof bodies.pause> },
): Promise<Response> {
  if (!isThere(c, agents, agent)) return notThere(agent);
  return c.json({ agent, ...(await pauseAgent(c.var.deps, agent, why)) });
}

export async function resumeByApi(c: Request, { agents, params: { agent } }: Asked): Promise<Response> {
  if (!isThere(c, agents, agent)) return notThere(agent);
  return c.json({ agent, ...(await resumeAgent(c.var.deps, agent)) });
}

/** An agent that the token is not for is answered like one that does not exist. */
export function isThere(c: Request, agents: readonly WebAgent[], name: string): boolean {
  return agents.some((agent) => agent.name === name) && mayUse(c.var.token, name);
}

const notThere = (name: string) =>
  problem("not_found", `There is no agent ${JSON.stringify(name.slice(0, 63))}`);
