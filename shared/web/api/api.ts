import type { Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Authenticate } from "../authenticate.ts";
import type { Env, WebAgent } from "../context.ts";
import { problem } from "../problem.ts";
import { answer } from "./route.ts";
import { routes } from "./routes.ts";
import { inputCheck } from "./tasks.ts";

/** Bytes of a body beside the task's input, which has its own limit. */
const BODY_ROOM = 64 * 1024;

/** The API: every route of the list, behind its token. */
export function addApi(app: Hono<Env>, agents: readonly WebAgent[], authenticate: Authenticate): void {
  const known = agents.map((agent) => ({ ...agent, input: inputCheck(agent) }));
  const bearer = bearerToken(authenticate);
  for (const one of routes) {
    const path = one.path.replaceAll(/\{(\w+)\}/g, ":$1");
    const guards = one.scope === "none" ? [] : [bearer];
    app.on(one.method.toUpperCase(), [path], ...guards, (c) => answer(one, c, known));
  }
  // Without a token, nobody learns which paths exist.
  app.use("/v1/*", bearer);
}

/** Puts the token that a request carries, and the servers it may use, into the request's variables. */
function bearerToken(authenticate: Authenticate): MiddlewareHandler<Env> {
  return async (c, next) => {
    const text = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    const authenticated = await authenticate(text, c.env);
    if (authenticated.kind === "refused")
      return problem("unauthorised", "Send Authorization: Bearer <token>. Make one: pawl token create", {
        "www-authenticate": "Bearer",
      });
    if (authenticated.kind === "slower") {
      const { seconds } = authenticated;
      return problem("too_many_requests", `Too many requests. Try again in ${seconds} s`, {
        "retry-after": String(seconds),
      });
    }
    const { deps, token } = authenticated;
    c.set("deps", deps);
    c.set("token", token);
    const most = deps.settings.inputLimit + BODY_ROOM;
    const onError = () => problem("input_too_large", `The body is over ${most} bytes`);
    return bodyLimit({ maxSize: most, onError })(c, next);
  };
}
