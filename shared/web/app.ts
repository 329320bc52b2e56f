import { Hono } from "hono";
import { addApi } from "./api/api.ts";
import { authenticator } from "./authenticate.ts";
import type { Env, WebAgent } from "./context.ts";
import { GUARDED, isPublic } from "./guarded.ts";
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
    // After the handler, which may have said less: an event stream says no-cache, which lets a cache keep it.
    for (const [name, value] of Object.entries(GUARDED))
      if (name !== "cache-control" || !isPublic(c.res)) c.header(name, value);
    if (corsOrigin !== undefined) c.header("vary", "origin", { append: true });
    if (!isAllowed) return;
    c.header("access-control-allow-origin", corsOrigin);
    c.header("access-control-allow-headers", "authorization, content-type, idempotency-key, last-event-id");
    c.header("access-control-allow-methods", "GET, POST");
    // So long a browser need not ask again whether it may. Each answer says so itself in any case.
    c.header("access-control-max-age", "600");
    c.header("access-control-expose-headers", "location, retry-after");
  });

  addApi(app, agents, authenticate);
  addPages(app, agents, authenticate);
  return app;
}
