import type { Json } from "../values/json.ts";

/** Something that a person should hear of. */
export interface Notice {
  /** The same however often it is sent: receivers recognise a repetition by it. */
  readonly id: string;
  readonly type: string;
  readonly at: number;
  readonly data: Json;
}

/** Resolves when it was taken, and throws otherwise. */
export type Notify = (notice: Notice) => Promise<void>;
