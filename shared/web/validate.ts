import type { Deps } from "../ports/deps.ts";
import type { Bindings } from "./authenticate.ts";
import { DEFAULT_RATE, rateLimiter } from "./limit.ts";
import { findToken, isTokenLike, type Token } from "./tokens.ts";

/** What becomes of a request by its token, however that was sent. */
export type Admitted =
  | { readonly kind: "admitted"; readonly deps: Deps; readonly token: Token }
  | { readonly kind: "refused" }
  | { readonly kind: "slower"; readonly seconds: number };

export type Admit = (
  text: string | undefined,
  env: Pick<Bindings, "open" | "rateLimit">,
) => Promise<Admitted>;

/** One per app: API and pages count the requests of a token together. */
export function admission(): Admit {
  const tooMany = rateLimiter();
  return async (text, env) => {
    // What can't be a token is not worth a connection.
    if (text === undefined || !isTokenLike(text)) return { kind: "refused" };
    const perMinute = env.rateLimit ?? DEFAULT_RATE;
    const wait = tooMany(text, perMinute);
    if (wait > 0) return { kind: "slower", seconds: wait };
    const deps = await env.open();
    const token = await findToken(deps.store, text);
    if (token) return { kind: "admitted", deps, token };
    // Guesses, of however many tokens, are counted together.
    const guessed = tooMany("unknown", perMinute);
    return guessed > 0 ? { kind: "slower", seconds: guessed } : { kind: "refused" };
  };
}
