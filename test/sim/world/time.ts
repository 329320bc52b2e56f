/** What is to happen at a moment. */
interface Happening {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** Takes a happening back; one that has happened stays. */
export type Withdraw = () => void;

/**
 * The time of a simulated world: it stands still while code runs, and jumps to the next thing that is to happen. All that
 * happens at one moment happens in the order in which it was asked for.
 */
export class Time {
  now: number;
  private readonly heap: Happening[] = [];
  private asked = 0;

  constructor(begin: number) {
    this.now = begin;
  }

  at(moment: number, run: () => void): Withdraw {
    const happening: Happening = { at: Math.max(moment, this.now), order: this.asked++, run };
    this.push(happening);
    return () => {
      happening.run = undefined;
    };
  }

  /** Lets the next thing happen. False when there is none before `until`. */
  step(until: number): boolean {
    for (;;) {
      const next = this.heap[0];
      if (!next || next.at > until) return false;
      this.pop();
      if (!next.run) continue;
      this.now = next.at;
      const { run } = next;
      next.run = undefined;
      run();
      return true;
    }
  }

  private push(one: Happening): void {
    const { heap } = this;
    let i = heap.push(one) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(one, heap[parent] as Happening)) break;
      heap[i] = heap[parent] as Happening;
      i = parent;
    }
    heap[i] = one;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Happening;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Happening, heap[child] as Happening))
        child++;
      if (!isBefore(heap[child] as Happening, last)) break;
      heap[i] = heap[child] as Happening;
      i = child;
    }
    heap[i] = last;
  }
}

function isBefore(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
