/**
 * Whether a text was there before, by a hash of 64 bits: eight bytes each, for millions of them. Among a million texts
 * two with the same hash are there once in 37 million runs. The seed is a secret of the run, so that nobody can make up
 * an id that hides behind another one.
 */
export class SeenHashes {
  readonly #highSeed: number;
  readonly #lowSeed: number;
  /** Pairs of 32 bits; of a free slot the second is 0. */
  #slots = new Uint32Array(2 * 512);
  #count = 0;

  constructor(seed: string, kept: Uint32Array = new Uint32Array()) {
    this.#highSeed = mixed(seed, 0x9e3779b9);
    this.#lowSeed = mixed(seed, 0x85ebca6b);
    for (let i = 0; i < kept.length; i += 2) this.#put(kept[i] as number, kept[i + 1] as number);
  }

  has(text: string): boolean {
    return this.#isTaken(this.#find(mixed(text, this.#highSeed), this.#low(text)));
  }

  add(text: string): void {
    this.#put(mixed(text, this.#highSeed), this.#low(text));
  }

  /** All hashes, for keeping them until the reconciliation goes on. */
  get kept(): Uint32Array<ArrayBuffer> {
    const kept = new Uint32Array(2 * this.#count);
    for (let at = 0, to = 0; at < this.#slots.length; at += 2) {
      if (!this.#isTaken(at)) continue;
      kept.set(this.#slots.subarray(at, at + 2), to);
      to += 2;
    }
    return kept;
  }

  /** Never 0, so that no hash looks like a free slot. */
  #low(text: string): number {
    return mixed(text, this.#lowSeed) || 1;
  }

  #isTaken(at: number): boolean {
    return this.#slots[at + 1] !== 0;
  }

  #put(high: number, low: number): void {
    if (this.#count * 4 >= this.#slots.length) this.#grow();
    const at = this.#find(high, low);
    if (!this.#isTaken(at)) this.#count++;
    this.#slots[at] = high;
    this.#slots[at + 1] = low;
  }

  /** The slot of a hash, or the free one where it would be. */
  #find(high: number, low: number): number {
    const slots = this.#slots;
    const last = slots.length / 2 - 1;
    for (let slot = low & last; ; slot = (slot + 1) & last) {
      const at = 2 * slot;
      if ((slots[at] === high && slots[at + 1] === low) || !this.#isTaken(at)) return at;
    }
  }

  #grow(): void {
    const before = this.kept;
    this.#slots = new Uint32Array(2 * this.#slots.length);
    this.#count = 0;
    for (let i = 0; i < before.length; i += 2) this.#put(before[i] as number, before[i + 1] as number);
  }
}

/** 32 bits of a text by MurmurHash3, a character at a time; another seed is another hash. */
export function mixed(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) {
    const piece = Math.imul(text.charCodeAt(i), 0xcc9e2d51);
    hash ^= Math.imul((piece << 15) | (piece >>> 17), 0x1b873593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= text.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** 64 bits of a text in eleven letters and digits or so, the same in every run: to know it again where it is not kept. */
export function shortHash(text: string): string {
  return `${mixed(text, 0x9e3779b9).toString(36)}.${mixed(text, 0x85ebca6b).toString(36)}`;
}
