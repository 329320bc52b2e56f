import type { TaskStore } from "../../ports/store.ts";
import type { Bucket } from "./bucket.ts";
import type { Values } from "./lease.ts";
import type { Newest } from "./list.ts";

/** A store in one bucket, and what a store of several asks of each. */
export interface BucketStore extends TaskStore {
  readonly values: Values;
  readonly bucket: Bucket;
  newest: Newest;
}
