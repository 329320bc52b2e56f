import { isPawlError } from "../../errors/errors.ts";
import type { KeptMessage } from "../../ports/bus.ts";
import { askAgain, type Pace } from "../pace.ts";
import type { Plan, PlannedQueue } from "../plan.ts";
import { type KeptBook, type Period, SequenceBook } from "./sequences.ts";

export type Books = ReadonlyMap<string, SequenceBook>;

/** What is to be explained of a queue. A queue that was made anew, or restored, begins from its first sequence. */
function periodOf({ info, before }: PlannedQueue): Period {
  if (!before || isRewound(info, before)) return { after: 0, upTo: info.lastSeq, open: [] };
  return { after: before.upTo, upTo: info.lastSeq, open: before.open };
}

export function isRewound(info: PlannedQueue["info"], before: NonNullable<PlannedQueue["before"]>): boolean {
  return info.lastSeq < before.upTo || info.createdAt !== before.createdAt;
}

/**
 * A book for each queue of the plan: a new one, or as it was kept. Of a stream that is gone, for what was open in it: it
 * may have been drained before it was deleted.
 */
export function booksOf({ queues, gone = [] }: Plan, kept: ReadonlyMap<string, KeptBook> = new Map()): Books {
  const periods = [
    ...queues.map((planned) => [planned.stream, periodOf(planned)] as const),
    ...gone.map(({ stream, before: { upTo, open } }) => [stream, { after: upTo, upTo, open }] as const),
  ];
  return new Map(
    periods.map(([stream, period]) => [stream, new SequenceBook(period, kept.get(stream))] as const),
  );
}

const PAGE = 500;

/** Where a page of a stream's messages begins. */
interface Place {
  readonly queue: number;
  readonly seq: number;
}

interface OpenPage {
  readonly next: Place;
  readonly stream: string;
  /** Messages that an earlier report has explained: their acks were lost. */
  readonly explained: readonly KeptMessage[];
}

/**
 * Writes down a page of what lies in a stream now. All of them come before any document is read: what left its stream
 * before was settled before, so the documents that are read afterwards say so. Undefined after the last queue.
 */
export async function openPage(
  pace: Pace,
  { queues }: Plan,
  books: Books,
  { queue: at, seq: from }: Place,
): Promise<OpenPage | undefined> {
  const planned = queues[at];
  if (!planned) return undefined;
  const { queue, stream, info } = planned;
  const found = await askAgain(pace, () => pace.deps.bus.survivors(queue, from, PAGE)).catch(
    (error: unknown) => {
      // The stream was there when the plan was made: what is not in a document is not explained.
      if (isPawlError(error, "queue_gone")) return [];
      throw error;
    },
  );
  const book = books.get(stream);
  const explained = found.filter(({ seq }) =>
    book?.present(seq, seq <= (info.consumer?.delivered ?? 0) ? "in_flight" : "queued"),
  );
  const last = found.at(-1)?.seq;
  const isLast = last === undefined || last >= info.lastSeq;
  return { stream, next: isLast ? { queue: at + 1, seq: 1 } : { queue: at, seq: last + 1 }, explained };
}
