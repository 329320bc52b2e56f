import type { Drill } from "../drill.ts";

/** One line that is written over, for a person who watches; nothing where nobody does. */
export function board(to: NodeJS.WriteStream, all: number) {
  const begun = Date.now();
  const running = new Set<string>();
  let done = 0;
  let timer: NodeJS.Timeout | undefined;
  const clear = () => {
    if (to.isTTY) to.write("\r\x1b[K");
  };
  const draw = () => {
    if (!to.isTTY || running.size === 0) return;
    const seconds = Math.round((Date.now() - begun) / 1000);
    const line = `${done} of ${all} done, ${seconds} s; now: ${[...running].join(", ")}`;
    to.write(`\r\x1b[K${line.slice(0, (to.columns || 120) - 1)}`);
  };
  return {
    start: ({ name }: Drill) => {
      running.add(name);
      if (to.isTTY) timer ??= setInterval(draw, 1_000).unref();
      draw();
    },
    end: ({ name }: Drill) => {
      running.delete(name);
      done++;
    },
    /** Other lines go above it. */
    aside: (say: () => void) => {
      clear();
      say();
      draw();
    },
    clear: () => {
      clearInterval(timer);
      clear();
    },
  };
}
