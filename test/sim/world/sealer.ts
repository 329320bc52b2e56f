import type { Sealer } from "../../../shared/ports/sealer.ts";

/** Shows what was changed, and costs next to nothing: nobody in a simulation forges seals. */
export const quickSealer: Sealer = {
  seal: (text) => `quick:${checksum(text)}`,
  isGenuine: (seal, text) => seal === `quick:${checksum(text)}`,
  isOfKnownKey: () => true,
  acceptsUnsealed: false,
};

function checksum(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0");
}
