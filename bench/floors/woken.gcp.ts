import { http } from "@google-cloud/functions-framework";
import { connect } from "@nats-io/transport-node";
import { type BareEnv, bareRun } from "./woken.ts";

process.env.NODE_ENV ??= "production";
http("pawl", async (_, response) => {
  const env = process.env as unknown as BareEnv;
  response.json(await bareRun(env, (servers) => connect({ servers, noAsyncTraces: true })));
});
