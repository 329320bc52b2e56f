import type { StreamInfo } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { Found, WriteResult } from "../../ports/store.ts";
import type { Picked, Scanned, ScanRange } from "./scan.ts";

export const taskKey = (id: string) => `task.${id}`;
/** The id that a document's key names. */
export const taskIdOf = (key: string) => key.slice(taskKey("").length);
export const headKey = (id: string) => `journal.${id}`;
export const partKey = (id: string, name: string) => `part.${id}.${name}`;
export const leaseKey = (id: string) => `lease.${id}`;
export const recordKey = (name: string) => `record.${name}`;
export const textKey = (name: string) => `text.${name}`;

/** Which bucket, and who opens it. */
export interface Place {
  readonly name: string;
  /** It has this agent's documents only. */
  readonly agent?: string;
  /** By an identity that may read and write there, and neither makes buckets nor consumers, nor removes anything. */
  readonly isConfined?: boolean;
}

/** Which agent a task's id belongs to, where each agent has a bucket: in the bucket that they share. */
export const whereKey = (id: string) => `where.${id}`;

/** The bucket that all share, where places in several are named: no agent's name. */
export const SHARED = "-";

/** So much text of documents is held at once. */
export const MOST_CHARS = 16_000_000;

/** The bucket as all that reads and writes it sees it; `what` is for the error when it fails. */
export interface Bucket {
  readonly kv: KV;
  /** What lies under a document's key. */
  found(key: string, revision: number | string, text: string): Found;
  ask<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** A write that is refused when the key is not as the writer saw it. */
  guarded(what: string, write: () => Promise<number>): Promise<WriteResult>;
  scan(what: string, filters: readonly string[], range?: ScanRange): AsyncGenerator<Scanned>;
  pick(what: string, keys: readonly string[]): AsyncGenerator<Picked>;
  /** Removes the messages themselves, as a marker would stay for ever; those up to a revision. Says how many. */
  purge(what: string, filter: string, upTo?: number): Promise<number>;
  /** Of the bucket's stream, by its leader. */
  info(what: string): Promise<StreamInfo>;
  /** The revision of the last value of these keys, or of the marker that one was deleted, by the leader; 0 without any. */
  lastOf(what: string, filter: string): Promise<number>;
  /** Whether something of these keys was written up to there, or deleted, by the leader. */
  hasUpTo(what: string, filter: string, revision: number): Promise<boolean>;
  /** When the first value of that revision or a later one was written, by the server's clock. */
  writtenFrom(what: string, revision: number): Promise<number | undefined>;
}
