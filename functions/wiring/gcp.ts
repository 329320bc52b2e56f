import { once } from "node:events";
import {
  type Request as HttpRequest,
  type Response as HttpResponse,
  http,
} from "@google-cloud/functions-framework";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import type { Log } from "../../shared/ports/log.ts";
import { problem } from "../../shared/web/problem.ts";
import type { Config } from "./config.ts";
import type { Who } from "./connect.ts";
import { bodyOf, contentTypeOf, guardServer } from "./gcp-guard.ts";
import { logOf } from "./log.ts";
import { answerRun, type Job, logged, timeBudget } from "./run.ts";
import { redacted, redactorOf } from "./secrets.ts";
import { LAST_SPANS } from "./trace.ts";
import { type Wired, wire } from "./wire.node.ts";

// What the framework refuses itself, such as broken JSON, it would answer with a stack trace.
process.env.NODE_ENV ??= "production";

/** The longest that a Cloud Run function's request may take. */
const HTTP_LIMIT = 60 * 60_000;

/** A job as a Cloud Run function: woken by POST /run, which Cloud Scheduler sends every minute. */
export function gcpJob(job: Job): void {
  const redact = redactorOf(job.secrets ?? [], process.env);
  const log = redacted(logOf(job.name), redact);
  const work = async (config: Config, limitMs: number): Promise<object> => {
    const { stop, invocation } = timeBudget(config, limitMs, config.timeLimit ?? HTTP_LIMIT);
    const deps = await kept(config, log, job);
    try {
      return await job.run({ ...deps, invocation, redact }, AbortSignal.any([stop, ending.signal]), config);
    } finally {
      await deps.meter.flush();
    }
  };
  // A caller that hangs up does not end this one: its request goes on to its end.
  gcpFunction(
    (request) =>
      answerRun(request, process.env, log, {
        timeLimit: HTTP_LIMIT,
        work: (config, limitMs) => logged(job, work(config, limitMs), log),
      }),
    log,
  );
}

/** Registers the one function of this bundle, as web requests and responses. */
export function gcpFunction(answer: (request: Request) => Promise<Response>, log = logOf("pawl")): void {
  guardServer();
  http("pawl", async (request: HttpRequest, response: HttpResponse) => {
    endWell(log);
    // Until it is answered, whether or not the caller still listens.
    const over = respond(answered(request, answer).finally(sendOwed), response);
    underWay.add(over);
    await over.finally(() => underWay.delete(over));
  });
}

/** The platform gives an instance no time between requests: the last one under way sends the wakes and spans that are owed. */
async function sendOwed(): Promise<void> {
  if (underWay.size > 1) return;
  const wired = await current?.catch(() => undefined);
  wired?.hurry();
  await wired?.trace?.flush(LAST_SPANS);
}

async function answered(
  request: HttpRequest,
  answer: (request: Request) => Promise<Response>,
): Promise<Response> {
  let asked: Request;
  try {
    asked = webRequest(request);
  } catch {
    // A method that no web request may have.
    return problem("not_found", `There is no ${request.method} here`);
  }
  return answer(asked);
}

async function respond(answer: Promise<Response>, response: HttpResponse): Promise<void> {
  const answered = await answer;
  response.status(answered.status);
  answered.headers.forEach((value, name) => void response.setHeader(name, value));
  const sent = new Promise((resolve) => response.on("close", resolve).on("finish", resolve));
  const reader = answered.body?.getReader();
  const cancel = () => void reader?.cancel().catch(() => {});
  // Whoever hung up needs no more of a stream, and may have done so before it began.
  response.on("close", cancel);
  if (response.destroyed) cancel();
  // What has no end of its own would keep an instance that is to end; its reader connects again, to another.
  const isEndless = answered.headers.get("content-type")?.startsWith("text/event-stream");
  if (isEndless) ending.signal.addEventListener("abort", cancel);
  if (isEndless && ending.signal.aborted) cancel();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
    // Who does not read is waited for: what they missed must not pile up here.
    if (!response.write(part.value) && !response.destroyed)
      await Promise.race([once(response, "drain"), once(response, "close")]).catch(() => {});
  ending.signal.removeEventListener("abort", cancel);
  response.end();
  if (!response.destroyed) await sent;
}

const ending = new AbortController();
const underWay = new Set<Promise<unknown>>();
let isOurs = false;

/**
 * The platform asks an instance to end, and waits for a while: long enough to hand off. The framework's own listener,
 * which it adds after it has loaded this module, would end the process at once.
 */
function endWell(log: Log): void {
  if (isOurs) return;
  isOurs = true;
  // Of a promise that an agent forgot to await: it must not end the tasks of others.
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => {
    log("error", "agent.unhandled-rejection", { reason: messageOf(reason) });
  });
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
  const type = contentTypeOf(request);
  if (type) headers.set("content-type", type);
  const { method } = request;
  const body = bodyOf(request);
  const hasBody = method !== "GET" && method !== "HEAD" && body !== undefined;
  return new Request(urlOf(request), { method, headers, ...(hasBody && { body: new Uint8Array(body) }) });
}

/** Put together, not resolved: a path that begins with two slashes would name another host. */
function urlOf({ headers: { host = "" }, originalUrl }: HttpRequest): URL {
  const path = originalUrl.startsWith("/") ? originalUrl : originalUrl.replace(/^\w+:\/\/[^/]*/, "");
  const here = `https://${/^[\w.:[\]-]+$/.test(host) ? host : "unknown"}${path}`;
  return new URL(URL.canParse(here) ? here : `https://unknown${path}`);
}

let current: Promise<Wired> | undefined;

/** One connection for as long as the instance lives. It heals itself; only one that is closed for good is replaced. */
export async function kept(config: Config, log: Log, who: Who): Promise<Wired> {
  const mine = current ?? wire(config, log, who);
  current = mine;
  const forget = () => {
    if (current === mine) current = undefined;
  };
  const wired = await mine.catch((error: unknown) => {
    forget();
    throw error;
  });
  if (!wired.nc.isClosed()) return answering(wired);
  forget();
  return kept(config, log, who);
}

/** Others may be working on it, so it is never closed here: one that is dead after a freeze is made to connect anew. */
async function answering(wired: Wired): Promise<Wired> {
  const { nc, settings, clock } = wired;
  const until = clock.monotonic() + settings.requestTimeout;
  for (let isTold = false; clock.monotonic() < until; ) {
    const late = new Promise<"late">((resolve) => setTimeout(resolve, settings.requestTimeout / 3, "late"));
    const answer = await Promise.race([
      nc.rtt().then(
        () => "here" as const,
        () => "away" as const,
      ),
      late,
    ]);
    if (answer === "here") return wired;
    if (answer === "late" && !isTold) await nc.reconnect().catch(() => {});
    isTold ||= answer === "late";
    await clock.sleep(100);
  }
  throw new PawlError("bus_unavailable", `NATS does not answer within ${settings.requestTimeout} ms`);
}
