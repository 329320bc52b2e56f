import { PawlError } from "../../errors/errors.ts";

/** What is needed of a service account's key file. */
export interface ServiceAccount {
  readonly client_email: string;
  readonly private_key: string;
  readonly token_uri: string;
}

const SCOPE = "https://www.googleapis.com/auth/datastore";
/** Asked for again this long before it expires. */
const EARLY = 120_000;

export function parseServiceAccount(text: string, source: string): ServiceAccount {
  let key: Partial<ServiceAccount>;
  try {
    key = JSON.parse(text) as Partial<ServiceAccount>;
  } catch {
    // The parser's message would quote the key.
    throw new PawlError(
      "setting_invalid",
      `${source} is not JSON. It should be a service account's key file`,
    );
  }
  const { client_email, private_key, token_uri = "https://oauth2.googleapis.com/token" } = key;
  if (typeof client_email !== "string" || typeof private_key !== "string") {
    throw new PawlError(
      "setting_invalid",
      `${source} has no client_email and private_key: not a service account's key`,
    );
  }
  return { client_email, private_key, token_uri };
}

/** A token; another one when the caller says that the last was refused. */
export type TokenSource = (refused?: "refused") => Promise<string>;

/** Access tokens for a service account, by WebCrypto and fetch alone. One request serves all callers until it expires. */
export function serviceAccountToken(account: ServiceAccount, now: () => number = Date.now): TokenSource {
  let current: { token: Promise<string>; until: number } | undefined;
  return (refused) => {
    if (current && now() < current.until && refused === undefined) return current.token;
    const fresh = exchange(account, now()).then(({ token, lifetime }) => {
      entry.until = now() + lifetime - EARLY;
      return token;
    });
    const entry = { token: fresh, until: now() + 30_000 };
    current = entry;
    fresh.catch(() => {
      if (current === entry) current = undefined;
    });
    return fresh;
  };
}

/** A token that says who calls, made out to one receiver: for a Cloud Run function that is closed to others. */
export async function identityToken(
  account: ServiceAccount,
  audience: string,
  now: number,
): Promise<string | undefined> {
  const { body } = await asserted(account, { target_audience: audience }, now);
  return typeof body.id_token === "string" ? body.id_token : undefined;
}

async function exchange(account: ServiceAccount, now: number): Promise<{ token: string; lifetime: number }> {
  const { response, body } = await asserted(account, { scope: SCOPE }, now);
  if (!response.ok || typeof body.access_token !== "string") {
    const reason = body.error_description ?? body.error ?? `HTTP ${response.status}`;
    const passes = response.status >= 500 || response.status === 429 || response.status === 408;
    const code = passes ? "store_unavailable" : "store_refused";
    throw new PawlError(code, `No access token for ${account.client_email}: ${String(reason)}`);
  }
  return { token: body.access_token, lifetime: Number(body.expires_in ?? 3600) * 1000 };
}

/** What Google's token endpoint answers to a signed claim. */
async function asserted(
  account: ServiceAccount,
  asked: Readonly<Record<string, string>>,
  now: number,
): Promise<{ response: Response; body: Record<string, unknown> }> {
  const seconds = Math.floor(now / 1000);
  const claims = {
    iss: account.client_email,
    ...asked,
    aud: account.token_uri,
    iat: seconds,
    exp: seconds + 3600,
  };
  const unsigned = `${base64url(JSON.stringify({ alg: "RS256", typ: "JWT" }))}.${base64url(JSON.stringify(claims))}`;
  const signature = await sign(unsigned, account.private_key);
  const response = await fetch(account.token_uri, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: `${unsigned}.${signature}`,
    }),
    signal: AbortSignal.timeout(10_000),
  });
  return { response, body: (await response.json().catch(() => ({}))) as Record<string, unknown> };
}

async function sign(text: string, pem: string): Promise<string> {
  const der = atob(pem.replace(/-----[^-]+-----|\s/g, ""));
  const bytes = Uint8Array.from(der, (c) => c.charCodeAt(0));
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("pkcs8", bytes, algorithm, false, ["sign"]).catch(() => {
    throw new PawlError("setting_invalid", "The service account's private_key can't be read as a PKCS#8 key");
  });
  const signature = await crypto.subtle.sign(algorithm.name, key, new TextEncoder().encode(text));
  return base64url(String.fromCharCode(...new Uint8Array(signature)));
}

function base64url(text: string): string {
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
