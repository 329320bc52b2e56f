/** One server-sent event, as a browser would read it. */
export interface SseEvent {
  readonly event: string;
  readonly id: string;
  readonly data: Record<string, unknown>;
}

/** The events of a stream, as they arrive. Comments and times to wait are left out. */
export async function* eventsOf(response: Response): AsyncGenerator<SseEvent, void> {
  if (!response.body) return;
  let text = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) =>
        fields
          .flatMap((line) => (line.startsWith(`${name}: `) ? line.slice(name.length + 2) : []))
          .join("\n");
      if (field("data") === "") continue;
      yield { event: field("event"), id: field("id"), data: JSON.parse(field("data")) as SseEvent["data"] };
    }
  }
}

/** What it is about, in a word: "claim", "step one#1", "end completed". */
export function wordOf({ event, data }: SseEvent): string {
  if (event === "transition") return String(data.event);
  if (event === "delta") return `delta ${data.key}`;
  return event === "journal" ? `${data.kind} ${data.key}` : `${event} ${data.state}`;
}

/** Reads a stream step by step. */
export async function follow(asked: Promise<Response>) {
  const response = await asked;
  const events = eventsOf(response);
  const seen: SseEvent[] = [];
  const words = () => seen.map(wordOf);
  const next = async (what: string): Promise<SseEvent> => {
    const { value, done } = await events.next();
    if (done || !value) throw new Error(`the stream ended before ${what}, after ${words().join(", ")}`);
    seen.push(value);
    return value;
  };
  return {
    response,
    seen,
    words,
    /** Up to the event of this word, which may be there already. */
    until: async (word: string): Promise<SseEvent> => {
      for (;;) {
        const found = seen.find((one) => wordOf(one) === word);
        if (found) return found;
        await next(word);
      }
    },
    /** So many more, or as many as there are. */
    take: async (count: number): Promise<SseEvent[]> => {
      const before = seen.length;
      while (seen.length < before + count && seen.at(-1)?.event !== "end") await next("more");
      return seen.slice(before);
    },
    /** Until it is closed from the other side. */
    rest: async (): Promise<void> => {
      for await (const event of events) seen.push(event);
    },
    hangUp: async (): Promise<void> => {
      await events.return();
    },
  };
}
