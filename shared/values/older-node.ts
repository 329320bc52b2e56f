/**
 * What Pawl's code asks of a Node that is older than 24, for those who run its commands and tests there. Functions are
 * never that old, and do not import this. Where it is there already, nothing is changed.
 */

const promises = Promise as { withResolvers?: unknown };
promises.withResolvers ??= () => {
  let settle = {};
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
};

const maps = Map as { groupBy?: unknown };
maps.groupBy ??= <Item, Key>(items: Iterable<Item>, keyOf: (item: Item, index: number) => Key) => {
  const groups = new Map<Key, Item[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
};

type Dispose = () => unknown;

/** The part of it that Pawl uses. */
class Stack {
  #all: Dispose[] = [];
  use<Value extends AsyncDisposable | Disposable | null | undefined>(value: Value): Value {
    const one = value as Partial<AsyncDisposable & Disposable> | null | undefined;
    const dispose = one?.[Symbol.asyncDispose] ?? one?.[Symbol.dispose];
    if (one && !dispose) throw new TypeError("It can't be disposed of");
    if (one && dispose) this.#all.push(() => dispose.call(one));
    return value;
  }
  defer(dispose: Dispose): void {
    this.#all.push(dispose);
  }
  move(): Stack {
    const moved = new Stack();
    [moved.#all, this.#all] = [this.#all, []];
    return moved;
  }
  async disposeAsync(): Promise<void> {
    const all = this.#all.reverse();
    this.#all = [];
    const failures: unknown[] = [];
    for (const dispose of all) {
      try {
        await dispose();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync();
  }
}

const globals = globalThis as { AsyncDisposableStack?: unknown };
globals.AsyncDisposableStack ??= Stack;
