import type { PromiseName } from "../facts.ts";

/** Something that must not be, and which promise it breaks. */
export interface Broken {
  readonly promise: PromiseName;
  readonly detail: string;
}
