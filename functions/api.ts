import { agents } from "pawl:agents";
import type { Deps } from "../shared/journey/deps.ts";
import type { Log } from "../shared/ports/log.ts";
import { createApp } from "../shared/web/app.ts";
import { failed } from "../shared/web/problem.ts";
import { logOf } from "./log.ts";

const log = logOf("api");
const app = createApp({ agents });

/** The HTTP API. `open`: a connection for this request, made once. */
export async function answerApi(request: Request, open: (log: Log) => Promise<Deps>): Promise<Response> {
  let opened: Promise<Deps> | undefined;
  const once = () => {
    opened ??= open(log);
    return opened;
  };
  try {
    return await app.fetch(request, { open: once, log });
  } catch (error) {
    return failed(error, log);
  }
}
