import type { Stored, StoredRecord, TaskStore } from "../../ports/store.ts";
import type { Bucket } from "./bucket.ts";
import type { Values } from "./lease.ts";
import type { Newest } from "./list.ts";

/** A store in one bucket, and what a store of several asks of each. */
export interface BucketStore extends TaskStore {
  readonly values: Values;
  readonly bucket: Bucket;
  newest: Newest;
  /** A document by its text, as \`get\` has it. */
  read(id: string, text: StoredRecord): Stored;
}

/** The buckets that a store is made of. */
export interface Buckets {
  /**
   * The one that all share: Pawl's own records and texts, where each task is, and the documents of before agents had buckets
   * of their own. None for an identity that is confined to an agent.
   */
  readonly shared?: BucketStore;
  /** Where records and texts are. */
  readonly own: BucketStore;
  /** Agents' identities do not reach the shared bucket: a message of a task that lies there would find no document. */
  readonly isOutOfReach?: boolean;
  /** Agents that have a bucket, as far as this identity may know. */
  agents(): Promise<readonly string[]>;
  /** An agent's bucket, made where it is missing and may be made. */
  open(agent: string): Promise<BucketStore>;
}
