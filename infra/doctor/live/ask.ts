import { isPawlError, messageOf } from "../../../shared/errors/errors.ts";
import type { Live } from "./live.ts";

/** What is filled in while a deployment is looked at. */
export type Seen = { -readonly [K in keyof Live]: Live[K] };

/** Undefined where it was refused. */
export type Ask = <T>(what: string, work: () => Promise<T>) => Promise<T | undefined>;

/** What is refused is a finding; what fails otherwise ends the look. */
export function asking(live: Seen): Ask {
  return async (what, work) => {
    try {
      return await work();
    } catch (error) {
      if (!isPawlError(error, "bus_refused") && !isPawlError(error, "store_refused")) throw error;
      live.refused = [...live.refused, { what, reason: messageOf(error) }];
      return undefined;
    }
  };
}

/** How far a server's clock is ahead of this one, by a moment between the question and its answer. */
export function ahead(serverNow: number, before: number, after = Date.now()): number {
  if (serverNow < before) return serverNow - before;
  return serverNow > after ? serverNow - after : 0;
}
