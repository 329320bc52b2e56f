import type * as z from "zod";
import { listAudit } from "../../audit/read.ts";
import type { Request } from "../context.ts";
import type { queries } from "./schemas.ts";

const DEFAULT_LIMIT = 50;

/** A page of the audit trail. A token that is limited to agents sees what was done to their tasks, and nothing of tokens. */
export async function auditList(c: Request, query: z.infer<typeof queries.audit>): Promise<Response> {
  const { deps, token } = c.var;
  const { since, until, actor, task, op, cursor, limit = DEFAULT_LIMIT } = query;
  const filter = {
    ...(since !== undefined && { since: Date.parse(since) }),
    ...(until !== undefined && { until: Date.parse(until) }),
    ...(actor !== undefined && { actor }),
    ...(task !== undefined && { task }),
    ...(op !== undefined && { op }),
    ...(token.agents && { agents: token.agents }),
  };
  return c.json(await listAudit(deps, filter, limit, cursor === undefined ? undefined : Number(cursor)));
}
