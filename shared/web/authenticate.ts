import type { Deps } from "../ports/deps.ts";
import type { Bindings } from "./context.ts";
import { DEFAULT_RATE, rateLimiter } from "./rate-limit.ts";
import { findToken, isTokenLike, type Token } from "./tokens.ts";

/** Whether a request's token is valid, whether it came as a header or as a cookie. "slower": over the rate limit. */
export type Authenticated =
  | { readonly kind: "authenticated"; readonly deps: Deps; readonly token: Token }
  | { readonly kind: "refused" }
  | { readonly kind: "slower"; readonly seconds: number };

export type Authenticate = (
  text: string | undefined,
  env: Pick<Bindings, "open" | "rateLimit">,
) => Promise<Authenticated>;

/** One per app: API and pages count the requests of a token together. */
export function authenticator(): Authenticate {
  const tooMany = rateLimiter();
  return async (text, env) => {
    // Text that can't be a token is refused without opening a connection.
    if (text === undefined || !isTokenLike(text)) return { kind: "refused" };
    const perMinute = env.rateLimit ?? DEFAULT_RATE;
    const wait = tooMany(text, perMinute);
    if (wait > 0) return { kind: "slower", seconds: wait };
    const deps = await env.open();
    const token = await findToken(deps.store, text);
    if (token) return { kind: "authenticated", deps, token };
    // Requests with unknown tokens are counted together, however many tokens were guessed.
    const guessed = tooMany("unknown", perMinute);
    return guessed > 0 ? { kind: "slower", seconds: guessed } : { kind: "refused" };
  };
}
