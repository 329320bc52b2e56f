import { identityToken, type ServiceAccount } from "../../shared/adapters/firestore/google-token.ts";

/** Headers that let a request in where Google asks who calls; none elsewhere. */
export type SignIn = (url: string) => Promise<Readonly<Record<string, string>>>;

const METADATA = "http://metadata.google.internal";
/** A token is asked for again this long before it expires; where there was none, after this long. */
const EARLY = 300_000;

export interface SignInOptions {
  /** A service account's key, where there is one; else the account that this function runs as is asked for. */
  readonly account?: () => Promise<ServiceAccount | undefined>;
  /** Google's metadata server, for functions on its platform; null where there can't be one. */
  readonly metadata?: string | null;
  readonly now?: () => number;
  /** How long it may take to answer, in milliseconds: it is on the same machine, or there is none. */
  readonly within?: number;
}

/**
 * A Cloud Run function is called with a token of Google's, made out to its address. In a header of its own: the usual
 * one has PAWL_RUN_SECRET. Where there is no token to be had the request goes without, and is refused there.
 */
export function signIn(options: SignInOptions = {}): SignIn {
  const { account, metadata = METADATA, now = Date.now, within = 1_000 } = options;
  const tokens = new Map<string, { token: Promise<string | undefined>; until: number }>();
  const fresh = async (audience: string): Promise<string | undefined> => {
    const key = await account?.();
    if (key) return identityToken(key, audience, now());
    return metadata === null ? undefined : fromMetadata(metadata, audience, within);
  };
  const tokenFor = (audience: string): Promise<string | undefined> => {
    const kept = tokens.get(audience);
    if (kept && now() < kept.until) return kept.token;
    const entry = { token: fresh(audience).catch(() => undefined), until: now() + EARLY };
    tokens.set(audience, entry);
    void entry.token.then((token) => {
      if (token) entry.until = expiryOf(token, now()) - EARLY;
    });
    return entry.token;
  };
  return async (url) => {
    const { protocol, hostname, origin } = new URL(url);
    if (protocol !== "https:" || !hostname.endsWith(".run.app")) return {};
    const token = await tokenFor(origin);
    return token ? { "x-serverless-authorization": `Bearer ${token}` } : {};
  };
}

async function fromMetadata(server: string, audience: string, within: number): Promise<string | undefined> {
  const path = "/computeMetadata/v1/instance/service-accounts/default/identity";
  const response = await fetch(`${server}${path}?audience=${encodeURIComponent(audience)}&format=full`, {
    headers: { "metadata-flavor": "Google" },
    signal: AbortSignal.timeout(within),
  });
  const token = (await response.text()).trim();
  return response.ok && token.split(".").length === 3 ? token : undefined;
}

/** As the token itself says. */
function expiryOf(token: string, now: number): number {
  try {
    const claims = atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"));
    const { exp } = JSON.parse(claims) as { exp?: number };
    return typeof exp === "number" ? exp * 1_000 : now;
  } catch {
    return now;
  }
}
