import type { Deps } from "../shared/journey/deps.ts";
import type { Log } from "../shared/ports/log.ts";
import { logOf } from "./log.ts";
import { failed, problem } from "./run.ts";

const log = logOf("api");

/** The HTTP API. `open`: a connection for this request. */
export async function answerApi(request: Request, open: (log: Log) => Promise<Deps>): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname !== "/health") return problem(404, "not_found", `There is no ${pathname} here`);
  if (request.method !== "GET") return problem(405, "method", "Use GET", { allow: "GET" });
  try {
    const deps = await open(log);
    // A document that is not there is an answer; a store that is away is an error.
    await deps.store.get("health");
    return Response.json({ ok: true });
  } catch (error) {
    return failed(error, log);
  }
}
