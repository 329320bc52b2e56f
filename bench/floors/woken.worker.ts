import { wsconnect } from "@nats-io/nats-core";
import { type BareEnv, bareRun } from "./woken.ts";

export default {
  fetch: async (_: Request, env: BareEnv): Promise<Response> =>
    Response.json(await bareRun(env, (servers) => wsconnect({ servers, noAsyncTraces: true }))),
};
