import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { sha256 } from "../values/json.ts";
import type { Bindings, Request } from "./context.ts";
import { type Charge, DEFAULT_RATE, rateLimiter } from "./rate-limit.ts";
import { remembered } from "./remembered.ts";
import { useNoter } from "./token-list.ts";
import { findByHash, isExpired, isTokenLike, type KnownToken } from "./tokens.ts";

/** Whether a request's token is valid, whether it came as a header or as a cookie. "slower": over the rate limit. */
export type Authenticated =
  | {
      readonly kind: "authenticated";
      readonly deps: Deps;
      readonly token: KnownToken;
      readonly charge: Charge;
      /** For what goes on after the request: false once the token is revoked or has expired. */
      isStillValid(): Promise<boolean>;
    }
  | { readonly kind: "refused" }
  | { readonly kind: "expired"; readonly at: number }
  | { readonly kind: "slower"; readonly seconds: number };

export type Authenticate = (
  text: string | undefined,
  env: Pick<Bindings, "open" | "rateLimit" | "log" | "keep" | "from">,
) => Promise<Authenticated>;

/** How long a token that nobody knows is refused without asking for it again. None can come to be meanwhile: they are not guessed. */
const REFUSED_FOR = 60_000;
/** How long a token that was valid is looked up before the limit of strangers is asked. */
const KNOWN_FOR = 3_600_000;
/** Tokens whose streams are open are looked up this often: a stream of one that is revoked ends within three of these. */
export const CHECK_EVERY = 2_500;
/** What strangers may ask from everywhere together, in the limits of one address. */
const STRANGERS = 4;

/** One per app: API and pages count the requests of a token together. */
export function authenticator(now: () => number = Date.now): Authenticate {
  const tooMany = rateLimiter(now);
  const refused = remembered<true>(REFUSED_FOR, now);
  const known = remembered<true>(KNOWN_FOR, now);
  const checked = remembered<boolean>(CHECK_EVERY, now);
  const noteUse = useNoter();

  /** Who has shown no valid token yet is counted by where they come from, and all of them together. */
  const strangers = (from: string, perMinute: number, cost: 1 | -1): number =>
    tooMany(`from ${from}`, perMinute, cost) || tooMany("strangers", perMinute * STRANGERS, cost);

  return async (text, env) => {
    // Text that can't be a token is refused without opening a connection.
    if (text === undefined || !isTokenLike(text)) return { kind: "refused" };
    const hash = sha256(text);
    const perMinute = env.rateLimit ?? DEFAULT_RATE;
    const from = env.from ?? "";
    const isKnown = known.get(hash) !== undefined;
    // Before anything is looked up: to guess costs others nothing, however many tokens are tried.
    const wait = isKnown ? tooMany(hash, perMinute) : strangers(from, perMinute, 1);
    if (wait > 0) return { kind: "slower", seconds: wait };
    if (refused.get(hash)) return { kind: "refused" };
    const deps = await env.open();
    const { store, clock } = deps;
    const token = await findByHash(store, hash);
    if (!token) {
      known.forget(hash);
      refused.set(hash, true);
      return { kind: "refused" };
    }
    if (!isKnown) {
      // No stranger after all.
      strangers(from, perMinute, -1);
      known.set(hash, true);
      const own = tooMany(hash, perMinute);
      if (own > 0) return { kind: "slower", seconds: own };
    }
    if (token.expiresAt !== undefined && isExpired(token, clock.now()))
      return { kind: "expired", at: token.expiresAt };
    const noted = noteUse(store, token, hash, clock.now())?.catch((error: unknown) => {
      env.log("warn", "token.use-unnoted", { token: token.id, reason: messageOf(error) });
    });
    if (noted) env.keep?.(noted);
    // One read for all streams of a token. The answer is shared, and not the request: in a Worker that belongs to whoever made it.
    const isStillValid = async () => {
      const before = checked.get(hash);
      if (before !== undefined) return before;
      checked.set(hash, true);
      const there = await findByHash(store, hash);
      const isValid = there !== undefined && !isExpired(there, clock.now());
      checked.set(hash, isValid);
      return isValid;
    };
    const charge: Charge = (cost, how) => tooMany(hash, perMinute, cost, how);
    return { kind: "authenticated", deps, token, charge, isStillValid };
  };
}

/** From here on the request is the token's: what it does is done, and written down, on its owner's behalf. */
export function enter(
  c: Request,
  { deps, token, charge, isStillValid }: Extract<Authenticated, { kind: "authenticated" }>,
  via: "api" | "dashboard",
): void {
  c.set("deps", { ...deps, actor: { name: token.owner, token: token.id, via } });
  c.set("token", token);
  c.set("charge", charge);
  c.set("isStillValid", isStillValid);
}
