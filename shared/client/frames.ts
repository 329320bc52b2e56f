/** One message of an event stream. */
export interface Frame {
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

/** The API says something every 15 s: who is silent for longer is gone. */
const LONGEST_SILENCE = 40_000;
/** More than any event of the API has. */
const LONGEST_FRAME = 4_000_000;

/**
 * The messages of a stream of server-sent events, each once it is whole: of what is cut off nothing is told. Ends where the
 * stream does, and throws where it breaks, is silent for too long, or makes a message that never ends.
 */
export async function* frames(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Frame, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await heard(reader.read(), signal);
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > LONGEST_FRAME) throw new Error("an event without an end");
      const whole = rest.split(/\r?\n\r?\n/);
      rest = whole.pop() ?? "";
      for (const text of whole) {
        const frame = frameOf(text);
        if (frame) yield frame;
      }
    }
  } finally {
    // Whatever ended it, nobody reads on, and its connection is let go.
    void reader.cancel().catch(() => {});
  }
}

/** Comments, and times to wait, are no messages. */
function frameOf(text: string): Frame | undefined {
  const fields: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^(\w+)(?:: ?(.*))?$/s.exec(line) ?? [];
    fields[name] = name === "data" && fields.data !== undefined ? `${fields.data}\n${value}` : value;
  }
  const { event = "message", id = "", data } = fields;
  return data === undefined ? undefined : { event, id, data };
}

/** What is read next, unless nothing comes for too long, or its reader has had enough. */
function heard<T>(read: Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const over = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      settle();
    };
    const stop = () => over(() => reject(signal?.reason));
    const timer = setTimeout(() => over(() => reject(new Error("silent for too long"))), LONGEST_SILENCE);
    read.then(
      (value) => over(() => resolve(value)),
      (error) => over(() => reject(error)),
    );
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
  });
}
