import { agents } from "pawl:agents";
import type { Deps } from "../shared/ports/deps.ts";
import type { Log } from "../shared/ports/log.ts";
import type { Env } from "../shared/settings/variable.ts";
import { createApp } from "../shared/web/app.ts";
import { problemOf } from "../shared/web/problem.ts";
import { type Config, configFrom } from "./wiring/config.ts";
import { lanesOf } from "./wiring/lanes.ts";
import { logOf } from "./wiring/log.ts";

const log = logOf("api");
const app = createApp({ agents });

/** The HTTP API. `open`: a connection for this request, made once. `keep`: for answers that take their time. */
export async function answerApi(
  request: Request,
  env: Env,
  open: (config: Config, log: Log) => Promise<Deps>,
  keep?: (until: Promise<unknown>) => void,
): Promise<Response> {
  // What is wrong with the settings is thrown where a connection is asked for: by then it is known who asks.
  const config = (async () => configFrom(env))();
  let opened: Promise<Deps> | undefined;
  const once = () => {
    opened ??= (async () => ({ ...(await open(await config, log)), lanesOf }))();
    return opened;
  };
  try {
    const { corsOrigin, rateLimit }: Partial<Config> = await config.catch(() => ({}));
    const answer = await app.fetch(request, {
      open: once,
      log,
      ...(corsOrigin && { corsOrigin }),
      ...(rateLimit && { rateLimit }),
      ...(keep && { keep }),
    });
    await opened?.then(({ meter }) => meter.flush()).catch(() => {});
    return answer;
  } catch (error) {
    return problemOf(error, log);
  }
}
