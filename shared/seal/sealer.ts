import { createHash, createHmac } from "node:crypto";
import type { Sealer } from "../ports/sealer.ts";
import { NO_KEY } from "../settings/servers.ts";
import { isSameSeal, keyIdOf, sealOf } from "./seal.ts";

/** The first key seals; all are accepted, and `none` is what has no key. */
export function sealerOf(keys: readonly string[] = [NO_KEY]): Sealer {
  const makers = keys.map(makerOf);
  return {
    seal: (text) => (makers[0] as Maker).seal(text),
    isGenuine: (seal, text) => makers.some((maker) => isSameSeal(maker.seal(text), seal)),
    isOfKnownKey: (seal) => makers.some(({ id }) => id === keyIdOf(seal)),
    acceptsUnsealed: keys.includes(NO_KEY),
  };
}

interface Maker {
  readonly id: string;
  seal(text: string): string;
}

function makerOf(key: string): Maker {
  if (key === NO_KEY)
    return { id: "0", seal: (text) => sealOf("0", createHash("sha256").update(text).digest("base64url")) };
  const mac = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
  const id = mac("which key").slice(0, 6);
  return { id, seal: (text) => sealOf(id, mac(text)) };
}
