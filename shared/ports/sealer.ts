/**
 * Makes seals of texts, and knows its own again. Without a key a seal shows what was changed by mistake; with one,
 * nobody who does not have it can make one.
 */
export interface Sealer {
  /** By the newest key. */
  seal(text: string): string;
  /** Whether it is the seal of this text, by any key that is accepted. */
  isGenuine(seal: string, text: string): boolean;
  /** Whether it was made with a key that is accepted. A seal of another key says nothing of the text. */
  isOfKnownKey(seal: string): boolean;
  /** Whether what has no seal is accepted: it was written before there were seals. Where there is a key, only if it is said so. */
  readonly acceptsUnsealed: boolean;
}
