import { messageOf } from "../../errors/errors.ts";
import type { Request } from "../context.ts";
import { problem } from "../problem.ts";

/** Whether NATS and the store answer. Where they are is not for everyone, so the reason goes to the log. */
export async function health(c: Request): Promise<Response> {
  try {
    const deps = await c.env.open();
    // A document that does not exist is an answer; a store that is away is an error.
    await deps.store.get("health");
    return c.json({ ok: true });
  } catch (error) {
    c.env.log("error", "health.failed", { reason: messageOf(error) });
    return problem("unhealthy", "NATS or the store does not answer. See the function's log");
  }
}
