import type { Hono } from "hono";
import { eventStream, taskEvents } from "../api/events.ts";
import { seesAll, taskFor } from "../authorize.ts";
import type { Env, Request } from "../context.ts";

/** A page is told of changes at most once in this time. */
const LEAST_PAUSE = 1_000;
/** A page is refreshed at least this often: ages grow though nothing happens, and a notification may get lost. */
const LONGEST_PAUSE = 10_000;

/** The same events as the API's, for a browser with its cookie. */
export function addLivePages(ui: Hono<Env>): void {
  ui.get("/tasks/:id/live", async (c) => {
    const task = await taskFor(c.var, c.req.param("id"));
    return taskEvents(c, task, { seen: c.req.query("after"), deltas: true });
  });
  ui.get("/live", (c) => changes(c));
}

/** Says that something has changed, not what: the page is fetched again, with what its token may see. */
function changes(c: Request): Response {
  const { deps, token } = c.var;
  return eventStream(c, { page: "overview" }, async (stream, signal) => {
    let changed = Promise.withResolvers<void>();
    // A token that sees only its owner's tasks is not told when others' tasks change: its page refreshes on a timer.
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
