import type { Hono, MiddlewareHandler } from "hono";
import { type Authenticate, enter } from "../authenticate.ts";
import { bodyOfAtMost, chargeBytes, saidLength } from "../body.ts";
import type { Env, WebAgent } from "../context.ts";
import { problem } from "../problem.ts";
import { inputCheck } from "./input-check.ts";
import { answer } from "./route.ts";
import { routes } from "./routes.ts";

/** Bytes of a body beside the task's input, which has its own limit. */
const BODY_ROOM = 64 * 1024;

/** The API: every route of the list, behind its token. */
export function addApi(app: Hono<Env>, agents: readonly WebAgent[], authenticate: Authenticate): void {
  const known = agents.map((agent) => ({ ...agent, checkInput: inputCheck(agent) }));
  const bearer = bearerToken(authenticate);
  for (const one of routes) {
    const path = one.path.replaceAll(/\{(\w+)\}/g, ":$1");
    const guards = [one.scope === "none" ? ifGiven(bearer) : bearer];
    app.on(one.method.toUpperCase(), [path], ...guards, (c) => answer(one, c, known));
  }
  // Without a token, nobody learns which paths exist.
  app.use("/v1/*", bearer);
}

/** What needs no token may say more to who has one. */
function ifGiven(bearer: MiddlewareHandler<Env>): MiddlewareHandler<Env> {
  return (c, next) => (c.req.header("authorization") === undefined ? next() : bearer(c, next));
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
    if (authenticated.kind === "expired") {
      const detail = `The token expired at ${new Date(authenticated.at).toISOString()}. Make another: pawl token create`;
      return problem("token_expired", detail, { "www-authenticate": 'Bearer error="invalid_token"' });
    }
    if (authenticated.kind === "slower") {
      const { seconds } = authenticated;
      return problem("too_many_requests", `Too many requests. Try again in ${seconds} s`, {
        "retry-after": String(seconds),
      });
    }
    const { deps } = authenticated;
    enter(c, authenticated, "api");
    const most = deps.settings.inputLimit + BODY_ROOM;
    const onError = () => problem("input_too_large", `The body is over ${most} bytes`);
    // Before any of it is read; what is over the limit is refused unread, and costs no more than its request.
    const said = saidLength(c) ?? 0;
    if (said <= most) chargeBytes(c, said);
    return bodyOfAtMost(most, onError)(c, next);
  };
}
