import type { Deps } from "../ports/deps.ts";
import type { Millis } from "../task/document.ts";
import { isFinal, states } from "../task/table.ts";
import { byteLength } from "../values/json.ts";
import { isSplit, type Subject, shownSubject } from "./quotas.ts";
import { MESSAGE } from "./usage.ts";

interface Counted {
  readonly tasks: number;
  readonly bytes: number;
}

/** An agent's queue, by its lane; or without one that agent's own bucket. */
export interface Place {
  readonly agent: string;
  readonly lane?: number;
}

/** What all owners and agents had, in all, by queue and by agent's own bucket, when the documents were last counted, as a record of the store has it. */
export interface Count {
  /** When it was begun, and how long it took, in milliseconds. */
  readonly at: Millis;
  readonly took: number;
  readonly of: Readonly<Record<string, Counted>>;
}

/** As the record has it while somebody counts. */
interface Counting extends Count {
  readonly begunAt?: Millis;
}

const RECORD = "quota-count";
/** Counting is at most a twentieth of the time, and never more often than this. */
const SHARE = 20;
const SHORTEST = 5_000;
/** Who counts for longer has died. */
const LONGEST = 60_000;

const OPEN = states.filter((state) => !isFinal({ state }));

const NOTHING: Count = { at: 0, took: 0, of: {} };

interface Recounted {
  readonly count: Count;
  /** Counted just now, and not by another before. */
  readonly isNew: boolean;
  /** Seconds until documents may be counted again. */
  readonly after: number;
}

/** Seconds until documents may be counted again. */
function pauseOf({ at, took, begunAt }: Counting, now: Millis): number {
  const next = begunAt === undefined ? at + took + Math.max(SHORTEST, SHARE * took) : begunAt + LONGEST;
  return Math.max(0, Math.ceil((next - now) / 1_000));
}

/**
 * Counts what all owners and agents have, in one pass over the documents, and says since when that holds. Or says in how
 * many seconds that may be done: one of all instances counts at a time, and each pass is shared by everyone who waits for
 * it. Where the store has an end, finished tasks count too until they are removed: their bytes fill it as others' do.
 */
export async function recount(
  deps: Pick<Deps, "store" | "clock" | "log" | "settings">,
  isBounded: boolean,
): Promise<Recounted> {
  const { store, clock } = deps;
  const found = await store.getRecord(RECORD);
  const last: Counting = found ? (JSON.parse(found.text) as Counting) : NOTHING;
  const at = clock.now();
  const after = pauseOf(last, at);
  if (after > 0) return { count: last, isNew: false, after: Math.min(after, 60) };
  const claim = await store.putRecord(RECORD, JSON.stringify({ ...last, begunAt: at }), found?.revision);
  if (claim.kind === "refused") return { count: last, isNew: false, after: SHORTEST / 1_000 };
  const begun = clock.monotonic();
  const of = await sums(deps, isBounded);
  const count: Count = { at, took: Math.ceil(clock.monotonic() - begun), of };
  // Refused: this one took so long that another began. What it counted is as good.
  await store.putRecord(RECORD, JSON.stringify(count), claim.revision);
  deps.log("info", "quota.counted", { of: Object.keys(of).length, ms: count.took });
  return { count, isNew: true, after: SHORTEST / 1_000 };
}

/** In all, or in one place. */
export function countedOf({ of }: Count, subject: Subject, place?: Place): Counted {
  return of[keyOf(subject, place)] ?? { tasks: 0, bytes: 0 };
}

function keyOf(subject: Subject, place?: Place): string {
  const whose = shownSubject(subject);
  if (!place) return whose;
  const { agent, lane } = place;
  return lane === undefined ? `bucket ${agent} ${whose}` : `queue ${agent}/${lane} ${whose}`;
}

async function sums(
  { store, settings }: Pick<Deps, "store" | "settings">,
  isBounded: boolean,
): Promise<Count["of"]> {
  const of: Record<string, Counted> = {};
  const add = (key: string, tasks: number, bytes: number) => {
    const sum = of[key] ?? { tasks: 0, bytes: 0 };
    of[key] = { tasks: sum.tasks + tasks, bytes: sum.bytes + bytes };
  };
  const filter = isBounded ? {} : { states: OPEN };
  for (let cursor: string | undefined; ; ) {
    const page = await store.list(filter, store.pageSize, cursor);
    for (const task of page.tasks) {
      const { agent, meta } = task;
      const isOpen = !isFinal(task);
      const bytes = byteLength(JSON.stringify(task));
      const subjects: Subject[] = [{ kind: "agent", name: agent }];
      if (meta?.owner !== undefined) subjects.push({ kind: "owner", name: meta.owner });
      for (const subject of subjects) {
        add(keyOf(subject), isOpen ? 1 : 0, bytes);
        if (isSplit(settings, subject)) add(keyOf(subject, { agent }), isOpen ? 1 : 0, bytes);
        // Also of those that wait or are due later: they come back into their queue, each with its input.
        if (isOpen) add(keyOf(subject, task), 1, byteLength(JSON.stringify(task.input)) + MESSAGE);
      }
    }
    cursor = page.cursor;
    if (cursor === undefined) return of;
  }
}
