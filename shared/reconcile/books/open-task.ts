import type { Millis, State, Task } from "../../task/document.ts";
import { states } from "../../task/table.ts";
import { mixed } from "../../values/hashes.ts";

/** Numbers that a report counts of one task. */
export type Numbers = readonly number[];

/**
 * A task that a report left open: not over, or a dead letter, which somebody may redrive. The next report counts from
 * here on, and misses it where it is gone.
 */
export interface OpenTask {
  readonly id: string;
  readonly agent: string;
  readonly state: State;
  /** A hash of the stamp of its last write then. */
  readonly stamp: number;
  /** When a dead letter may be removed; 0 while the task lives. */
  readonly expiresAt: Millis;
  readonly numbers: Numbers;
}

/** In place of a stamp's hash: nobody could read the document then, or believe it. */
export const UNKNOWN = 0;

export const stampHash = (stamp: string) => mixed(stamp, 0x1234567) || 1;

export function openTaskOf(task: Task, numbers: Numbers): OpenTask {
  const { id, agent, state } = task;
  const expiresAt = "expiresAt" in task ? task.expiresAt : 0;
  return { id, agent, state, stamp: stampHash(task.stamp), expiresAt, numbers };
}

/** One line of text each: its id first, then what is not 0 at the end of its numbers. */
export function openTaskLine({ id, agent, state, stamp, expiresAt, numbers }: OpenTask): string {
  const last = numbers.findLastIndex((one) => one !== 0);
  const words = [states.indexOf(state), stamp, expiresAt, ...numbers.slice(0, last + 1)];
  return `${id} ${agent} ${words.map((one) => one.toString(36)).join(" ")}`;
}

/** Undefined where it is no such line. */
export function readOpenTask(line: string): OpenTask | undefined {
  const [id = "", agent = "", ...words] = line.split(" ");
  const [state = -1, stamp = 0, expiresAt = 0, ...numbers] = words.map((word) => Number.parseInt(word, 36));
  const known = states[state];
  if (!id || !known || [stamp, expiresAt, ...numbers].some(Number.isNaN)) return undefined;
  return { id, agent, state: known, stamp, expiresAt, numbers };
}

/** Bytes are kept in pieces of this size: a buffer that grows would be there twice while it does. */
const CHUNK = 1 << 20;

/**
 * All tasks that the last report left open, by id: a hash of 64 bits, and the rest of their lines as bytes. About 65
 * bytes each, so that a million of them fit a small function.
 */
export class OpenTaskIndex {
  /** Of each slot: two halves of the hash, and where its bytes begin. The second half of a free one is 0. */
  readonly #slots: Uint32Array;
  readonly #last: number;
  readonly #hashes: (id: string) => readonly [number, number];
  /** Lines, none of them in two pieces. */
  readonly #chunks: Uint8Array[] = [];
  #size = 0;
  #count = 0;

  /** For so many at most. The seed is its report's own, so that nobody can make up an id that hides behind another. */
  constructor(seed: string, most: number) {
    this.#hashes = hashesOf(seed);
    let slots = 16;
    while (slots < 1.5 * most) slots *= 2;
    this.#slots = new Uint32Array(3 * slots);
    this.#last = slots - 1;
  }

  get count(): number {
    return this.#count;
  }

  add(line: string): void {
    const space = line.indexOf(" ");
    const id = line.slice(0, space);
    const at = this.#find(id);
    if (this.#slots[at + 1] !== 0 || this.#count > this.#last / 1.5) return;
    const rest = new TextEncoder().encode(`${line.slice(space + 1)}\n`);
    if (rest.length > CHUNK) return;
    const end = CHUNK * this.#chunks.length;
    if (this.#size + rest.length > end) {
      this.#chunks.push(new Uint8Array(CHUNK));
      this.#size = end;
    }
    this.#chunks[Math.floor(this.#size / CHUNK)]?.set(rest, this.#size % CHUNK);
    this.#slots.set([...this.#hashes(id), this.#size], at);
    this.#size += rest.length;
    this.#count++;
  }

  get(id: string): OpenTask | undefined {
    const at = this.#find(id);
    if (this.#slots[at + 1] === 0) return undefined;
    const from = this.#slots[at + 2] as number;
    const chunk = this.#chunks[Math.floor(from / CHUNK)] as Uint8Array;
    const rest = chunk.subarray(from % CHUNK, chunk.indexOf(NEWLINE, from % CHUNK));
    return readOpenTask(`${id} ${new TextDecoder().decode(rest)}`);
  }

  #find(id: string): number {
    const [high, low] = this.#hashes(id);
    for (let slot = low & this.#last; ; slot = (slot + 1) & this.#last) {
      const at = 3 * slot;
      if (this.#slots[at + 1] === 0 || (this.#slots[at] === high && this.#slots[at + 1] === low)) return at;
    }
  }
}

const NEWLINE = 10;

function hashesOf(seed: string): (id: string) => readonly [number, number] {
  const [first, second] = [mixed(seed, 0x9e3779b9), mixed(seed, 0x85ebca6b)];
  return (id) => [mixed(id, first), mixed(id, second) || 1];
}

/** A hash of an id as text, and in which of so many pieces it is kept: for whoever asks of one task only. */
export function pieces(seed: string, count: number): (id: string) => { piece: number; hash: string } {
  const hashes = hashesOf(seed);
  return (id) => {
    const [high, low] = hashes(id);
    const hash = [high, low].map((one) => one.toString(36).padStart(7, "0")).join("");
    return { piece: Math.floor((high / 2 ** 32) * count), hash };
  };
}
