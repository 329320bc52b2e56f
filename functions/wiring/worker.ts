import { messageOf } from "../../shared/errors/errors.ts";
import { type Config, configFrom } from "./config.ts";
import { logOf } from "./log.ts";
import { answerRun, type Job, logged, timeBudget } from "./run.ts";
import { redacted, redactorOf } from "./secrets.ts";
import { wire } from "./wire.worker.ts";

/** Cloudflare ends a cron invocation after this long. */
const CRON_LIMIT = 15 * 60_000;
/** And what a request left behind, this long after its answer. */
const AFTERWARDS = 30_000;

export interface Context {
  waitUntil(work: Promise<unknown>): void;
}

/** A job as a Worker: woken by cron and by POST /run. One connection per invocation, closed at its end. */
export function workerJob(job: Job) {
  const redact = redactorOf(job.secrets ?? [], process.env);
  const log = redacted(logOf(job.name), redact);
  /** `after`: is given what is left when its work is done, and nobody has to wait for: counts, wakes, the connection's end. */
  const work = async (
    config: Config,
    limitMs: number,
    after: (closing: Promise<void>) => void,
  ): Promise<object> => {
    const { stop, invocation } = timeBudget(config, limitMs, config.timeLimit ?? CRON_LIMIT);
    const deps = await wire(config, log, job);
    try {
      return await job.run({ ...deps, invocation, redact }, stop, config);
    } finally {
      after(close(deps));
    }
  };
  const close = async (deps: AsyncDisposable): Promise<void> => {
    try {
      await deps[Symbol.asyncDispose]();
    } catch (error) {
      log("warn", "function.unclosed", { function: job.name, reason: messageOf(error) });
    }
  };
  return {
    fetch: (request: Request, env: object, context: Context): Promise<Response> =>
      answerRun(request, stringsOf(env), log, {
        timeLimit: CRON_LIMIT,
        afterwards: AFTERWARDS,
        work: (...args) => {
          const running = logged(
            job,
            work(...args, (closing) => context.waitUntil(closing)),
            log,
          );
          context.waitUntil(running.catch(() => {}));
          return running;
        },
      }),
    scheduled: async (_event: unknown, env: object): Promise<void> => {
      const config = configFrom(stringsOf(env));
      let closed: Promise<void> | undefined;
      const after = (closing: Promise<void>) => {
        closed = closing;
      };
      try {
        await logged(job, work(config, config.timeLimit ?? CRON_LIMIT, after), log);
      } finally {
        await closed;
      }
    },
  };
}

/** Variables and secrets; other bindings are the agent's own. */
export function stringsOf(env: object): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === "string"));
}
