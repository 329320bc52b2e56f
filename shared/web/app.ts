import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { messageOf } from "../task/errors.ts";
import type { Env, Request, WebAgent } from "./access.ts";
import { DEFAULT_RATE, rateLimiter } from "./limit.ts";
import { addLive } from "./live.ts";
import { addMetrics } from "./metrics.ts";
import { openApi } from "./openapi.ts";
import { addOperations } from "./operations.ts";
import { failed, problem } from "./problem.ts";
import { addTasks } from "./tasks.ts";
import { findToken, isTokenLike } from "./tokens.ts";

export interface AppOptions {
  /** The agents of this project. */
  readonly agents: readonly WebAgent[];
}

/** Everything but the input, which has its own limit. */
const BODY_ROOM = 64 * 1024;

/** The HTTP API. Nothing but /health is answered without a token. */
export function createApp({ agents }: AppOptions): Hono<Env> {
  const app = new Hono<Env>();
  const tooMany = rateLimiter();
  app.onError((error, c) => failed(error, c.env.log));
  app.notFound((c) => problem(404, "not_found", `There is no ${c.req.path} here`));

  app.use(async (c, next) => {
    const { corsOrigin } = c.env;
    if (corsOrigin && c.req.header("origin") === corsOrigin) {
      c.header("access-control-allow-origin", corsOrigin);
      c.header("access-control-allow-headers", "authorization, content-type, idempotency-key");
      c.header("access-control-allow-methods", "GET, POST");
      c.header("vary", "origin");
      if (c.req.method === "OPTIONS") return c.body(null, 204);
    }
    await next();
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
      return problem(503, "unhealthy", "NATS or the store does not answer. See the function's log");
    }
  });

  const slower = (seconds: number) =>
    problem(429, "too_many_requests", `Too many requests. Try again in ${seconds} s`, {
      "retry-after": String(seconds),
    });
  const authenticate = async (c: Request, next: () => Promise<void>) => {
    const text = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    const how = "Send Authorization: Bearer <token>. Make one: pawl token create";
    const refused = () => problem(401, "unauthorised", how, { "www-authenticate": "Bearer" });
    // What can't be a token is not worth a connection.
    if (text === undefined || !isTokenLike(text)) return refused();
    const perMinute = c.env.rateLimit ?? DEFAULT_RATE;
    const wait = tooMany(text, perMinute);
    if (wait > 0) return slower(wait);
    const deps = await c.env.open();
    c.set("deps", deps);
    const token = await findToken(deps.store, text);
    if (!token) {
      // Guesses, of however many tokens, are counted together.
      const guessed = tooMany("unknown", perMinute);
      return guessed > 0 ? slower(guessed) : refused();
    }
    c.set("token", token);
    const most = deps.settings.inputLimit + BODY_ROOM;
    const onError = () => problem(413, "input_too_large", `The body is over ${most} bytes`);
    return bodyLimit({ maxSize: most, onError })(c, next);
  };
  app.use("/v1/*", authenticate);
  app.use("/metrics", authenticate);

  app.get("/v1/openapi.json", (c) => c.json(openApi()));
  addTasks(app, agents);
  addOperations(app);
  addLive(app);
  addMetrics(app, agents);
  return app;
}
