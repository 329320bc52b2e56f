/** What a list has at once. */
export interface Page<Item> {
  /** The items, which may be fewer than asked for, or none, also where there are more. */
  readonly items: readonly Item[];
  /** Where the next page begins; none after the last. */
  readonly cursor?: string;
}

/** A list that is read page by page, as it is gone through: `for await (const task of client.tasks())`. */
export interface List<Item> extends AsyncIterable<Item> {
  /** Whole pages, from a cursor on: for lists that people turn the pages of. */
  pages(cursor?: string): AsyncIterable<Page<Item>>;
}

export function listOf<Item>(read: (cursor?: string) => Promise<Page<Item>>): List<Item> {
  async function* pages(cursor?: string): AsyncGenerator<Page<Item>, void> {
    let at = cursor;
    do {
      const page = await read(at);
      yield page;
      at = page.cursor;
    } while (at !== undefined);
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { items } of pages()) yield* items;
    },
  };
}
