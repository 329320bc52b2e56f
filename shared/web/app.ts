import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { messageOf } from "../errors/errors.ts";
import type { Env, Request, WebAgent } from "./authenticate.ts";
import { addLive } from "./live.ts";
import { addMetrics } from "./metrics.ts";
import { openApi } from "./openapi.ts";
import { addOperations } from "./operations.ts";
import { addPages } from "./pages/pages.ts";
import { failed, problem } from "./problem.ts";
import { addTasks } from "./tasks.ts";
import { admission } from "./validate.ts";

export interface AppOptions {
  /** The agents of this project. */
  readonly agents: readonly WebAgent[];
}

/** Everything but the input, which has its own limit. */
const BODY_ROOM = 64 * 1024;

/** The HTTP API and the dashboard. Nothing but /health, the login and the assets is answered without a token. */
export function createApp({ agents }: AppOptions): Hono<Env> {
  const app = new Hono<Env>();
  const admit = admission();
  // Without a token that is known, what is wrong with the settings or the servers is not for its holder.
  app.onError((error, c) => failed(error, c.env.log, c.get("token") ? "whole" : "kind"));
  app.notFound((c) => problem("not_found", `There is no ${c.req.path} here`));

  app.use(async (c, next) => {
    const { corsOrigin } = c.env;
    const isAllowed = corsOrigin !== undefined && c.req.header("origin") === corsOrigin;
    if (isAllowed && c.req.method === "OPTIONS") c.res = c.body(null, 204);
    else await next();
    // Afterwards, for problems are answers of their own.
    if (corsOrigin !== undefined) c.header("vary", "origin", { append: true });
    if (!isAllowed) return;
    c.header("access-control-allow-origin", corsOrigin);
    c.header("access-control-allow-headers", "authorization, content-type, idempotency-key, last-event-id");
    c.header("access-control-allow-methods", "GET, POST");
    c.header("access-control-expose-headers", "location, retry-after");
  });

  app.get("/health", async (c) => {
    try {
      const deps = await c.env.open();
      // A document that is not there is an answer; a store that is away is an error.
      await deps.store.get("health");
      return c.json({ ok: true });
    } catch (error) {
      // Where they are is not for everyone.
      c.env.log("error", "health.failed", { reason: messageOf(error) });
      return problem("unhealthy", "NATS or the store does not answer. See the function's log");
    }
  });

  const slower = (seconds: number) =>
    problem("too_many_requests", `Too many requests. Try again in ${seconds} s`, {
      "retry-after": String(seconds),
    });
  const authenticate = async (c: Request, next: () => Promise<void>) => {
    const text = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    const how = "Send Authorization: Bearer <token>. Make one: pawl token create";
    const admitted = await admit(text, c.env);
    if (admitted.kind === "refused") return problem("unauthorised", how, { "www-authenticate": "Bearer" });
    if (admitted.kind === "slower") return slower(admitted.seconds);
    const { deps, token } = admitted;
    c.set("deps", deps);
    c.set("token", token);
    const most = deps.settings.inputLimit + BODY_ROOM;
    const onError = () => problem("input_too_large", `The body is over ${most} bytes`);
    return bodyLimit({ maxSize: most, onError })(c, next);
  };
  app.use("/v1/*", authenticate);
  app.use("/metrics", authenticate);

  app.get("/v1/openapi.json", (c) => c.json(openApi()));
  addTasks(app, agents);
  addOperations(app);
  addLive(app);
  addMetrics(app, agents);
  addPages(app, agents, admit);
  return app;
}
