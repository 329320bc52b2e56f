import type { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { type Followed, follow } from "../journey/follow.ts";
import { messageOf } from "../task/errors.ts";
import { type Env, need, taskFor } from "./access.ts";

/** Then the stream ends, and its reader connects again where it was: a function must not run for ever. */
const LONGEST = 300_000;
const PING_EVERY = 15_000;
/** What a model or an author wrote is shown up to here. */
const VALUE_SHOWN = 4_000;

/** What happens to a task, as it happens: server-sent events, to be gone on with by Last-Event-ID. */
export function addLive(app: Hono<Env>): void {
  app.get("/v1/tasks/:id/events", async (c) => {
    need(c.var.token, "read");
    const { id } = await taskFor(c.var, c.req.param("id"));
    const { deps } = c.var;
    const over = Promise.withResolvers<void>();
    c.env.keep?.(over.promise);
    c.header("cache-control", "no-store");
    return streamSSE(c, async (stream) => {
      const end = new AbortController();
      stream.onAbort(() => end.abort());
      const signal = AbortSignal.any([end.signal, AbortSignal.timeout(LONGEST)]);
      const ping = setInterval(() => void stream.write(": still here\n\n").catch(() => {}), PING_EVERY);
      try {
        await stream.write("retry: 1000\n\n");
        for await (const event of follow(deps, id, signal, c.req.header("last-event-id")))
          await stream.writeSSE({ event: event.kind, id: event.id, data: JSON.stringify(shown(event)) });
      } catch (error) {
        c.env.log("warn", "events.ended", { task: id, reason: messageOf(error) });
      } finally {
        clearInterval(ping);
        over.resolve();
      }
    });
  });
}

function shown({ kind, data }: Followed): object {
  if (kind !== "journal" || !("value" in data)) return data;
  const { value, ...rest } = data;
  const text = JSON.stringify(value) ?? "";
  return text.length <= VALUE_SHOWN ? data : { ...rest, cut: text.slice(0, VALUE_SHOWN) };
}
