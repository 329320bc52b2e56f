import { type SSEStreamingApi, streamSSE } from "hono/streaming";
import { type Told, turnsAloud } from "../../dispatch/aloud.ts";
import { type Followed, follow } from "../../dispatch/follow.ts";
import { messageOf } from "../../errors/errors.ts";
import type { Task } from "../../task/document.ts";
import { CHECK_EVERY } from "../authenticate.ts";
import type { Request } from "../context.ts";
import { problem } from "../problem.ts";

/** A stream ends after this time, and its reader connects again where it was: a function must not run for ever. */
const LONGEST = 300_000;
const PING_EVERY = 15_000;
/** Streams of one token at once, of one instance: each holds a connection and reads the store. */
const MOST_OPEN = 20;
const open = new Map<string, number>();
/** Characters of a journaled value that an event carries. */
const VALUE_SHOWN = 4_000;

/** How a task is followed. */
interface Following {
  /** The last event that is known already, for a browser, whose first request can't have the header. */
  readonly seen?: string | undefined;
  /** With what a turn says while it runs. */
  readonly deltas?: boolean | undefined;
}

/** What happens to a task, as it happens: server-sent events, to be gone on with by Last-Event-ID. */
export function taskEvents(c: Request, { id }: Task, { seen, deltas }: Following): Response {
  const { deps } = c.var;
  const after = c.req.header("last-event-id") ?? seen;
  return eventStream(c, { task: id }, async (stream, signal) => {
    let place = after ?? "";
    // Where the reader has come to does not move with it: none of it is told again.
    const tell = ({ fence, key, at, text }: Told) =>
      stream.write(frameOf("delta", place, { fence, key, at, text }));
    const words = deltas && deps.hears ? turnsAloud(deps.hears, tell) : undefined;
    try {
      for await (const event of follow(deps, id, signal, after, words?.looked)) {
        place = event.id;
        words?.told(event);
        await stream.write(frameOf(event.kind, event.id, shown(event)));
      }
    } finally {
      words?.stop();
    }
  });
}

/** Written at once, where the stream's own way has others come in between: an event's id is told with it, and never before. */
function frameOf(event: string, id: string, data: object): string {
  return `event: ${event}\n${id && `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** Server-sent events until the work is over, its reader has gone, or it has taken long enough. */
export function eventStream(
  c: Request,
  what: Record<string, string>,
  work: (stream: SSEStreamingApi, signal: AbortSignal) => Promise<void>,
): Response {
  // A HEAD request gets the headers, and no stream.
  if (c.req.method === "HEAD") return c.body(null, 200, { "content-type": "text/event-stream" });
  const whose = c.var.token.id;
  const others = open.get(whose) ?? 0;
  if (others >= MOST_OPEN)
    return problem("too_many_requests", `${others} event streams of this token are open already`, {
      "retry-after": "10",
    });
  open.set(whose, others + 1);
  const over = Promise.withResolvers<void>();
  c.env.keep?.(over.promise);
  return streamSSE(c, async (stream) => {
    const end = new AbortController();
    stream.onAbort(() => end.abort());
    const signal = AbortSignal.any([end.signal, AbortSignal.timeout(LONGEST)]);
    // Otherwise a write to a reader that does not read would never return.
    signal.addEventListener("abort", () => stream.abort());
    const ping = setInterval(() => void stream.write(": still here\n\n").catch(() => {}), PING_EVERY);
    const { isStillValid } = c.var;
    // What was open before its token was revoked tells nothing more.
    const check = setInterval(async () => {
      if (!(await isStillValid().catch(() => false))) end.abort();
    }, CHECK_EVERY);
    try {
      await stream.write("retry: 1000\n\n");
      await work(stream, signal);
    } catch (error) {
      c.env.log("warn", "events.ended", { ...what, reason: messageOf(error) });
    } finally {
      clearInterval(ping);
      clearInterval(check);
      const left = (open.get(whose) ?? 1) - 1;
      if (left > 0) open.set(whose, left);
      else open.delete(whose);
      over.resolve();
    }
  });
}

function shown({ kind, data }: Followed): object {
  if (kind !== "journal" || !("value" in data)) return data;
  const { value, ...rest } = data;
  const text = JSON.stringify(value) ?? "";
  return text.length <= VALUE_SHOWN ? data : { ...rest, cut: text.slice(0, VALUE_SHOWN) };
}
