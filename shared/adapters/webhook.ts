import type { Notify } from "../ports/notify.ts";

const TIMEOUT = 5_000;

/** Calls a URL, signed as https://www.standardwebhooks.com says: receivers have libraries for it. */
export function webhook({ url, secret }: { readonly url: string; readonly secret: string }): Notify {
  return async ({ id, type, at, data }) => {
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
    const timestamp = String(Math.floor(Date.now() / 1000));
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${await sign(secret, `${id}.${timestamp}.${body}`)}`,
      },
      body,
      // It could lead anywhere, with what is in the body.
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the webhook answered ${response.status}`);
  };
}

async function sign(secret: string, text: string): Promise<string> {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", keyOf(secret), algorithm, false, ["sign"]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text)));
  return btoa(String.fromCharCode(...signature));
}

/** "whsec_" and base64, as those libraries make them; any other text stands for itself. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  if (!secret.startsWith("whsec_")) return new TextEncoder().encode(secret);
  return Uint8Array.from(atob(secret.slice("whsec_".length)), (char) => char.charCodeAt(0));
}
