import {
  type Request as HttpRequest,
  type Response as HttpResponse,
  http,
} from "@google-cloud/functions-framework";
import type { Log } from "../shared/ports/log.ts";
import { type Config, configFrom } from "./config.ts";
import { logOf } from "./log.ts";
import { answerRun, type Job, logged, timeBudget } from "./run.ts";
import { type Wired, wire } from "./wire.node.ts";

/** The longest that a Cloud Run function's request may take. */
const HTTP_LIMIT = 60 * 60_000;

/** A job as a Cloud Run function: woken by POST /run, which Cloud Scheduler sends every minute. */
export function gcpJob(job: Job): void {
  const log = logOf(job.name);
  const work = async (config: Config, limitMs: number): Promise<object> => {
    const budget = timeBudget(config, limitMs);
    return job.run(await kept(config, log), AbortSignal.any([budget, ending.signal]), config);
  };
  // A caller that hangs up does not end this one: its request goes on to its end.
  gcpFunction((request) =>
    answerRun(request, () => configFrom(process.env), log, {
      timeLimit: HTTP_LIMIT,
      work: (config, limitMs) => logged(job, work(config, limitMs), log),
    }),
  );
}

/** Registers the one function of this bundle, as web requests and responses. */
export function gcpFunction(answer: (request: Request) => Promise<Response>): void {
  http("pawl", async (request: HttpRequest, response: HttpResponse) => {
    endWell();
    const over = new Promise((resolve) => response.on("close", resolve));
    underWay.add(over);
    void over.then(() => underWay.delete(over));
    const answered = await answer(webRequest(request));
    response.status(answered.status);
    answered.headers.forEach((value, name) => void response.setHeader(name, value));
    response.send(Buffer.from(await answered.arrayBuffer()));
  });
}

const ending = new AbortController();
const underWay = new Set<Promise<unknown>>();
let isOurs = false;

/**
 * The platform asks an instance to end, and waits for a while: long enough to hand off. The framework's own listener,
 * which it adds after it has loaded this module, would end the process at once.
 */
function endWell(): void {
  if (isOurs) return;
  isOurs = true;
  process.removeAllListeners("SIGTERM").on("SIGTERM", async () => {
    ending.abort(new Error("told to stop"));
    await Promise.allSettled(underWay);
    process.exit(0);
  });
}

function webRequest(request: HttpRequest): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const { method, rawBody } = request;
  const hasBody = method !== "GET" && method !== "HEAD" && rawBody !== undefined;
  const url = new URL(request.originalUrl, `https://${request.headers.host ?? "localhost"}`);
  return new Request(url, { method, headers, ...(hasBody && { body: new Uint8Array(rawBody) }) });
}

let current: Promise<Wired> | undefined;

/** One connection for as long as the instance lives. One that died while the instance was frozen is replaced. */
export async function kept(config: Config, log: Log): Promise<Wired> {
  const known = await current?.catch(() => undefined);
  if (known && (await answers(known))) return known;
  if (known) void known.nc.close().catch(() => {});
  current = wire(config, log);
  return current;
}

async function answers({ nc, settings }: Wired): Promise<boolean> {
  const late = new Promise<false>((resolve) => setTimeout(resolve, settings.requestTimeout, false));
  return (
    !nc.isClosed() &&
    Promise.race([
      nc.rtt().then(
        () => true,
        () => false,
      ),
      late,
    ])
  );
}
