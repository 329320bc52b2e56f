import { agents } from "pawl:agents";
import { schemas } from "pawl:schemas";
import { deltaListener } from "../shared/adapters/jetstream/delta-listener.ts";
import type { Deps } from "../shared/ports/deps.ts";
import type { Log } from "../shared/ports/log.ts";
import type { Env } from "../shared/settings/variable.ts";
import { createApp } from "../shared/web/app.ts";
import { problemOf } from "../shared/web/problem.ts";
import { type Config, configFrom } from "./wiring/config.ts";
import { lanesOf } from "./wiring/lanes.ts";
import { logOf } from "./wiring/log.ts";
import { ownSchema } from "./wiring/own-schema.ts";
import { redacted, redactorOf } from "./wiring/secrets.ts";
import type { Wired } from "./wiring/wire.node.ts";

const log = redacted(logOf("api"), redactorOf([], process.env));
const app = createApp({
  agents: agents.map((agent) => {
    const load = schemas[agent.name];
    return load ? { ...agent, accepts: ownSchema(agent.name, load, log) } : agent;
  }),
});

/** What a platform gives a request. */
interface Hosting {
  /** A connection for this request, made once. */
  open(config: Config, log: Log): Promise<Deps & Pick<Wired, "nc">>;
  /** Where it came from, by the platform's own word. */
  readonly from: string | undefined;
  /** For answers that take their time. */
  keep?(until: Promise<unknown>): void;
}

/** The HTTP API. */
export async function answerApi(
  request: Request,
  env: Env,
  { open, from, keep }: Hosting,
): Promise<Response> {
  // What is wrong with the settings is thrown where a connection is asked for: by then it is known who asks.
  const config = (async () => configFrom(env))();
  let opened: Promise<Deps> | undefined;
  const once = () => {
    opened ??= (async () => {
      const wired = await open(await config, log);
      return { ...wired, lanesOf, hears: deltaListener(wired.nc, wired.settings) };
    })();
    return opened;
  };
  try {
    const { corsOrigin, rateLimit }: Partial<Config> = await config.catch(() => ({}));
    const answer = await app.fetch(request, {
      open: once,
      log,
      ...(corsOrigin && { corsOrigin }),
      ...(rateLimit && { rateLimit }),
      ...(from && { from }),
      ...(keep && { keep }),
    });
    await opened?.then(({ meter }) => meter.flush()).catch(() => {});
    return answer;
  } catch (error) {
    return problemOf(error, log);
  }
}
