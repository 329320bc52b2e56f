import type { Sealer } from "../ports/sealer.ts";
import { NO_KEY } from "../settings/servers.ts";
import { base64url, isSameSeal, keyIdOf, sealOf } from "./seal.ts";

const bytes = new TextEncoder();

/** Seals by WebCrypto: for every runtime. The first key seals; all are accepted, and `none` is what has no key. */
export function webSealer(keys: readonly string[] = [NO_KEY]): Sealer {
  const makers = keys.map(makerOf);
  return {
    seal: async (text) => (await (makers[0] as Promise<Maker>)).seal(text),
    isGenuine: async (seal, text) => {
      const own = await Promise.all(makers.map(async (maker) => (await maker).seal(text)));
      return own.some((one) => isSameSeal(one, seal));
    },
    isOfKnownKey: async (seal) => (await Promise.all(makers)).some(({ id }) => id === keyIdOf(seal)),
    acceptsUnsealed: keys.includes(NO_KEY),
  };
}

interface Maker {
  readonly id: string;
  seal(text: string): Promise<string>;
}

async function makerOf(key: string): Promise<Maker> {
  if (key === NO_KEY) {
    const hash = async (text: string) =>
      new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.encode(text)));
    return { id: "0", seal: async (text) => sealOf("0", await hash(text)) };
  }
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", bytes.encode(key), algorithm, false, ["sign"]);
  const mac = async (text: string) =>
    new Uint8Array(await crypto.subtle.sign("HMAC", secret, bytes.encode(text)));
  const id = base64url(await mac("which key")).slice(0, 6);
  return { id, seal: async (text) => sealOf(id, await mac(text)) };
}
