import { otlp } from "../../shared/adapters/otlp.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { Meter } from "../../shared/ports/meter.ts";
import type { Trace } from "../../shared/ports/trace.ts";
import { tracing } from "../../shared/trace/tracing.ts";
import type { Config } from "./config.ts";
import type { Who } from "./connect.ts";

/** Longest that whoever ends waits for what its spans are sent to: an invocation, a command, a request. */
export const LAST_SPANS = 2_000;

interface Traced {
  readonly trace?: Trace;
  /** Lines about a task say which trace and span they belong to. */
  readonly log: Log;
}

/** Tells a tracing backend of tasks, where one is set. */
export function tracedOf({ traces, settings }: Config, log: Log, meter: Meter, who: Who): Traced {
  if (!traces) return { log };
  const { resource, sampling, content, every } = traces;
  const send = otlp({
    ...traces,
    resource: { "service.instance.id": crypto.randomUUID(), "pawl.function": who.name, ...resource },
  });
  const { namespace } = settings;
  const trace = tracing({ namespace, sampling, content, every, send, clock: systemClock, log, meter });
  const known = (task: unknown) => (typeof task === "string" ? trace.ofTask(task) : undefined);
  return { trace, log: (level, event, fields) => log(level, event, { ...fields, ...known(fields?.task) }) };
}
