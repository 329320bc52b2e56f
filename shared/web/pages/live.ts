import type { Hono } from "hono";
import { eventStream, taskEvents } from "../api/events.ts";
import { seesAll, taskFor } from "../authorize.ts";
import type { Env, Request } from "../context.ts";

/** However much happens, a page is told once in this time. */
const LEAST_PAUSE = 1_000;
/** Ages grow though nothing happens, and a word that something changed may get lost. */
const LONGEST_PAUSE = 10_000;

/** The same events as the API's, for a browser with its cookie. */
export function addLivePages(ui: Hono<Env>): void {
  ui.get("/tasks/:id/live", async (c) => {
    const task = await taskFor(c.var, c.req.param("id"));
    return taskEvents(c, task, c.req.query("after"));
  });
  ui.get("/live", (c) => changes(c));
}

/** That something has changed, and not what: the page is fetched again, by what its token may see. */
function changes(c: Request): Response {
  const { deps, token } = c.var;
  return eventStream(c, { page: "overview" }, async (stream, signal) => {
    let changed = Promise.withResolvers<void>();
    // Others' doings are not even hinted at: who sees only their own looks now and then.
    const stop = seesAll(token) && !token.agents ? deps.bus.listen(() => changed.resolve()) : () => {};
    try {
      for (;;) {
        await Promise.race([changed.promise, deps.clock.sleep(LONGEST_PAUSE, signal)]);
        if (signal.aborted) return;
        changed = Promise.withResolvers<void>();
        await stream.writeSSE({ event: "changed", data: "now" });
        await deps.clock.sleep(LEAST_PAUSE, signal);
      }
    } finally {
      stop();
    }
  });
}
