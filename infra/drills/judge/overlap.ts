import type { Deed } from "../outside/acts.ts";
import type { Word } from "../outside/words.ts";
import type { Broken } from "./broken.ts";
import type { Evidence } from "./evidence.ts";

const wrong = (detail: string): Broken => ({ promise: "no overlap", detail });

/** Executions that did anything after the next one of their task had begun, and processes that had to be silent. */
export function overlapped({ deeds, claims }: Evidence): Broken[] {
  const pairs = [...Map.groupBy(deeds, ({ id }) => id).values()].flatMap((all) => {
    const runs = [...Map.groupBy(all, ({ run }) => run).values()].map((own) => ({
      own,
      start: (own[0] as Deed).at,
      end: (own.at(-1) as Deed).at,
    }));
    const sorted = runs.sort((a, b) => a.start - b.start);
    return sorted.flatMap(({ own, end }, i) => {
      const next = sorted[i + 1];
      if (!next || end <= next.start) return [];
      const { run, id, deed = "an act" } = own.at(-1) as Deed;
      return [
        wrong(`${id}: ${run} did "${deed}" ${end - next.start} ms after ${next.own[0]?.run} had begun`),
      ];
    });
  });
  const silent = claims.flatMap(({ silent: pid, at, why }) => {
    const late = deeds.find((deed) => deed.pid === pid && deed.at > at);
    return late
      ? [wrong(`${late.id}: ${late.run} did "${late.deed ?? late.what}" ${late.at - at} ms after ${why}`)]
      : [];
  });
  return [...pairs, ...silent];
}

/**
 * Words about a delivery after the broker had heard of a later one, while the task was not over: JetStream honours them.
 * Where a server is killed its counts begin anew, and nothing is heard.
 */
export function staleWords({ words, stored }: Evidence): Broken[] {
  const settledAt = new Map<string, number>();
  for (const { task } of stored.values())
    for (const { queue, seq, at } of task.settled) settledAt.set(`${queue} ${seq}`, at);
  return [...Map.groupBy(words, ({ queue, seq }) => `${queue} ${seq}`)].flatMap(([sequence, all]) => {
    const over = settledAt.get(sequence) ?? Number.POSITIVE_INFINITY;
    let newest = 0;
    const stale = all.filter(({ delivery, at }) => {
      newest = Math.max(newest, delivery);
      return delivery < newest && at < over;
    });
    return stale.slice(0, 1).map((word) => wrong(said(word, newest)));
  });
}

const said = ({ word, queue, seq, delivery }: Word, newest: number) =>
  `a stale holder said ${word} about sequence ${seq} of ${queue}: it had delivery ${delivery}, and ${newest} was under way`;
