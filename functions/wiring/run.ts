import type { NatsConnection } from "@nats-io/nats-core";
import { isPawlError, messageOf, PawlError } from "../../shared/errors/errors.ts";
import type { Deps, Invocation } from "../../shared/ports/deps.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariables } from "../../shared/settings/variables.ts";
import { GUARDED } from "../../shared/web/guarded.ts";
import { problem, problemOf } from "../../shared/web/problem.ts";
import { type Config, configOf } from "./config.ts";

/** What a function does when it is woken, by cron or by POST /run. */
export interface Job {
  readonly name: string;
  /** Of an agent: the agents that its identity has to reach, itself first. */
  readonly reaches?: readonly string[];
  /** Names of its agent's secrets. */
  readonly secrets?: readonly string[];
  /** Begins nothing new once told to stop. Says what it did. */
  run(deps: Deps & { readonly nc: NatsConnection }, stop: AbortSignal, config: Config): Promise<object>;
}

/** What differs between platforms for a function that is woken. */
export interface Platform {
  /** Longest run of an invocation, in milliseconds, where PAWL_TIME_LIMIT does not say. */
  readonly timeLimit: number;
  /** How long an invocation may go on after its answer. None: it answers when it is done. */
  readonly afterwards?: number;
  /** Runs the job for at most this long; it is seen through even if nobody waits for it. */
  work(config: Config, limitMs: number): Promise<object>;
}

/**
 * The time of an invocation. It is told to stop early enough before the platform's limit that a task in progress can be
 * handed off: the handler's grace, and a write.
 */
export function timeBudget(
  { settings }: Pick<Config, "settings">,
  limitMs: number,
  longestMs: number,
): { readonly stop: AbortSignal; readonly invocation: Invocation } {
  const reserve = settings.stopGrace + settings.requestTimeout;
  const ms = limitMs - reserve;
  if (ms <= 0) {
    throw new PawlError(
      "setting_invalid",
      `A time limit of ${limitMs} ms leaves nothing for work: PAWL_STOP_GRACE and PAWL_REQUEST_TIMEOUT take ${reserve} ms of it. Raise PAWL_TIME_LIMIT`,
    );
  }
  const end = performance.now() + ms;
  const left = () => Math.max(0, end - performance.now());
  return { stop: AbortSignal.timeout(ms), invocation: { left, longest: longestMs - reserve } };
}

/** POST /run: authenticated, answered with what was done as JSON. Errors are problem details. */
export async function answerRun(request: Request, env: Env, log: Log, platform: Platform): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname !== "/run") return problem("not_found", `There is no ${pathname} here, only POST /run`);
  if (request.method !== "POST") return problem("method_not_allowed", "Use POST", { allow: "POST" });
  try {
    const reading = readVariables(env);
    // First: what is wrong with the settings is not for everyone.
    if (!(await isAuthorised(request, reading.given.PAWL_RUN_SECRET)))
      return problem("unauthorised", "Send Authorization: Bearer <PAWL_RUN_SECRET>", {
        "www-authenticate": "Bearer",
      });
    const config = configOf(reading);
    const { afterwards } = platform;
    if (afterwards && request.headers.get("prefer") === "respond-async") {
      platform.work(config, afterwards).catch(() => {});
      return Response.json({ accepted: true }, { status: 202, headers: GUARDED });
    }
    const limitMs = config.timeLimit ?? platform.timeLimit;
    return Response.json(await platform.work(config, limitMs), { headers: GUARDED });
  } catch (error) {
    return problemOf(error, log);
  }
}

/** Says in the log how it ended, whoever waits for it. */
export async function logged(job: Job, running: Promise<object>, log: Log): Promise<object> {
  try {
    const did = await running;
    log("info", "function.ran", { function: job.name, did: JSON.stringify(did) });
    return did;
  } catch (error) {
    const code = isPawlError(error) ? error.code : "unexpected";
    log("error", "function.failed", { function: job.name, code, reason: messageOf(error) });
    throw error;
  }
}

/** Cloud Scheduler has a token of its own where others have the secret, so it sends that apart. */
function secretIn({ headers }: Request): string {
  return (
    headers.get("x-pawl-run-secret") ?? /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? ""
  );
}

/** Digests are compared, so that the time it takes says nothing of where a guess goes wrong. */
export async function isAuthorised(request: Request, secret: string | undefined): Promise<boolean> {
  const given = secretIn(request);
  const digest = async (text: string) =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const [a, b] = [await digest(given), await digest(secret ?? "")];
  const difference = a.reduce((sum, byte, i) => sum | (byte ^ (b[i] as number)), 0);
  return secret !== undefined && secret !== "" && difference === 0;
}
