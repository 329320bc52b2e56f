import { Hono } from "hono";
import { addApi } from "./api/api.ts";
import { authenticator } from "./authenticate.ts";
import type { Env, WebAgent } from "./context.ts";
import { addPages } from "./pages/pages.ts";
import { problem, problemOf } from "./problem.ts";

export interface AppOptions {
  /** The agents of this project. */
  readonly agents: readonly WebAgent[];
}

/** The HTTP API and the dashboard. Nothing but /health, the login and the assets is answered without a token. */
export function createApp({ agents }: AppOptions): Hono<Env> {
  const app = new Hono<Env>();
  const authenticate = authenticator();
  // Without a valid token, a caller is not told what is wrong with the settings or the servers.
  app.onError((error, c) => problemOf(error, c.env.log, c.get("token") ? "whole" : "kind"));
  app.notFound((c) => problem("not_found", `There is no ${c.req.path} here`));

  app.use(async (c, next) => {
    const { corsOrigin } = c.env;
    const isAllowed = corsOrigin !== undefined && c.req.header("origin") === corsOrigin;
    if (isAllowed && c.req.method === "OPTIONS") c.res = c.body(null, 204);
    else await next();
    // After the handler, since problems are responses of their own. What a task holds is nobody else's: no cache keeps it,
    // and no browser takes it for a page.
    c.header("x-content-type-options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.header("cache-control", "no-store");
    if (corsOrigin !== undefined) c.header("vary", "origin", { append: true });
    if (!isAllowed) return;
    c.header("access-control-allow-origin", corsOrigin);
    c.header("access-control-allow-headers", "authorization, content-type, idempotency-key, last-event-id");
    c.header("access-control-allow-methods", "GET, POST");
    c.header("access-control-expose-headers", "location, retry-after");
  });

  addApi(app, agents, authenticate);
  addPages(app, agents, authenticate);
  return app;
}
