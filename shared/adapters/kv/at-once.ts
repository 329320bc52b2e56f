const MOST = 64;

/** Does it for each, so many at a time, and answers in their order. */
export async function atOnce<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let i = 0; i < items.length; i += MOST)
    done.push(...(await Promise.all(items.slice(i, i + MOST).map(work))));
  return done;
}
