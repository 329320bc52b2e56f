/** Numbers that follow from a seed, and from nothing else. */
export interface Random {
  /** From 0 up to, and without, 1. */
  next(): number;
  /** A whole number from 0 up to, and without, `below`. */
  int(below: number): number;
  between(least: number, most: number): number;
  chance(share: number): boolean;
  pick<T>(of: readonly T[]): T;
  /** As a process would make them up: unlike any other of the run. */
  uuid(): string;
}

/** The same name of the same seed always gives the same numbers, whatever others were asked for. */
export function random(seed: number, name = ""): Random {
  let [a, b, c] = hashes(`${seed}/${name}`);
  let count = 1;
  const bits = (): number => {
    const sum = (a + b + count++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  const next = () => bits() / 4_294_967_296;
  const hex = () => bits().toString(16).padStart(8, "0");
  for (let i = 0; i < 4; i++) bits();
  const self: Random = {
    next,
    int: (below) => Math.floor(next() * below),
    between: (least, most) => least + next() * (most - least),
    chance: (share) => next() < share,
    pick: (of) => of[Math.floor(next() * of.length)] as (typeof of)[number],
    uuid: () => {
      const [one, two, three, four] = [hex(), hex(), hex(), hex()];
      return `${one}-${two.slice(0, 4)}-4${two.slice(5)}-8${three.slice(1, 4)}-${three.slice(4)}${four}`;
    },
  };
  return self;
}

function hashes(text: string): [number, number, number] {
  let hash = 2_166_136_261;
  const mixed = (salt: number): number => {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i) ^ salt, 16_777_619);
    hash ^= hash >>> 15;
    return hash | 0;
  };
  return [mixed(1), mixed(2), mixed(3)];
}
