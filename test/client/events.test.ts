import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { clientOf } from "../../shared/client/client.ts";
import { NoResult, type TaskEvent } from "../../shared/client.ts";
import { json, problem, TOKEN, URL_OF_API, wrongOf } from "../support/http/answered.ts";
import { callingStage, type Fetch, hasty } from "../support/http/calling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function all(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const told: TaskEvent[] = [];
  for await (const event of events) told.push(event);
  return told;
}

/** Lets so many bytes of each answer through, then breaks off: rudely, or as if all had been said. */
function cutting(wire: Fetch, bytes: number, how: "rudely" | "quietly"): Fetch {
  return async (url, init) => {
    const answer = await wire(url, init);
    if (!url.includes("/events")) return answer;
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let left = bytes;
    const body = new ReadableStream<Uint8Array>({
      pull: async (stream) => {
        const { done, value } = await reader.read();
        if (value) stream.enqueue(value.subarray(0, left));
        left -= value?.length ?? 0;
        if (!done && left > 0) return;
        await reader.cancel();
        if (how === "rudely") stream.error(new TypeError("terminated"));
        else stream.close();
      },
    });
    return new Response(body, answer);
  };
}

test("a stream that is cut anywhere yields every event of the real API once, in order", async () => {
  await using s = await callingStage(nats, async ({ step }) => {
    for (const name of ["a", "b", "c"]) await step(name, () => `${name}: ü€`);
    return 1;
  });
  await s.client().submit("tested", {}, { id: "t" });
  await s.drain();
  const whole = await all(s.client().task("t").events());
  expect(whole.map(({ kind }) => kind).join(" ")).toBe(
    "transition transition journal journal journal transition end",
  );
  // Each answer begins with its time to wait; the longest event, and so one new event an answer, always fits.
  const longest = 60 + Math.max(...whole.map((event) => JSON.stringify(event).length));
  const lengths = fc.integer({ min: longest, max: longest * 4 });
  await fc.assert(
    fc.asyncProperty(lengths, fc.constantFrom("rudely", "quietly"), async (bytes, how) => {
      expect(
        await all(
          s
            .hasty(cutting(s.wire, bytes, how))
            .task("t")
            .events(),
        ),
      ).toEqual(whole);
    }),
    { numRuns: 12 },
  );
  for (const [i, { id }] of whole.entries()) {
    const rest = await all(s.client().task("t").events({ after: id }));
    expect(rest, `after ${i}`).toEqual(whole.slice(Math.min(i + 1, whole.length - 1)));
  }
});

const HISTORY = Array.from({ length: 6 }, (_, n) => ({
  at: n,
  event: `e${n}`,
  state: "running",
  stamp: `s${n}`,
}));

/** An API whose stream begins after the event that it is told, and is then made into bytes as the test likes. */
function telling(bytesOf: (text: string, connection: number) => Uint8Array[], all = HISTORY): Fetch {
  let connections = 0;
  return async (_, init) => {
    const after = (init.headers as Record<string, string>)["last-event-id"];
    const from = all.findIndex(({ stamp }) => stamp === after) + 1;
    const lines = all
      .slice(from)
      .map((one) => `event: transition\nid: ${one.stamp}\ndata: ${JSON.stringify(one)}\n\n`);
    const text = `retry: 1000\n\n: hello\n\n${lines.join("")}event: later\ndata: ?\n\nevent: end\nid: s5\ndata: {"state":"completed"}\n\n`;
    const parts = bytesOf(text, connections++);
    const body = new ReadableStream<Uint8Array>({
      pull: (stream) => {
        const part = parts.shift();
        if (part) stream.enqueue(part);
        else stream.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
  };
}

const following = (fetch: Fetch) =>
  clientOf(hasty({ url: URL_OF_API, token: TOKEN, fetch }))
    .task("t")
    .events();
const words = (told: readonly TaskEvent[]) =>
  told.map(({ kind, data }) => (kind === "transition" ? data.event : kind)).join(" ");
const WHOLE = "e0 e1 e2 e3 e4 e5 end";

test("however its bytes come, in pieces, cut off, with other line ends, each event comes once", async () => {
  const cuts = fc.array(fc.integer({ min: 0, max: 900 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(cuts, fc.integer({ min: 1, max: 200 }), fc.boolean(), async (lengths, size, isCrLf) => {
      const wire = telling((text, connection) => {
        const bytes = new TextEncoder().encode(isCrLf ? text.replaceAll("\n", "\r\n") : text);
        const most = lengths[connection] ?? bytes.length;
        const parts: Uint8Array[] = [];
        for (let at = 0; at < most; at += size) parts.push(bytes.subarray(at, Math.min(at + size, most)));
        return parts;
      });
      expect(words(await all(following(wire)))).toBe(WHOLE);
    }),
    { numRuns: 300 },
  );
});

test("what the API tells again, because it no longer knows how far one was, is dropped", async () => {
  const forgetful: Fetch = async (url, init) => {
    const headers = { ...(init.headers as Record<string, string>) };
    delete headers["last-event-id"];
    const cut = telling((text) => [new TextEncoder().encode(text.slice(0, cuts.shift()))]);
    return cut(url, { ...init, headers });
  };
  const cuts: (number | undefined)[] = [200, 350, 500, undefined];
  expect(words(await all(following(forgetful)))).toBe(WHOLE);
});

test("who stops reading lets the connection go; who aborts gets their reason", async () => {
  let open = 0;
  const endless: Fetch = async (url, init) => {
    const first = await telling((text) => [new TextEncoder().encode(text.slice(0, 250))])(url, init);
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    open++;
    const body = new ReadableStream<Uint8Array>({
      pull: async (stream) => {
        const { value } = await reader.read();
        if (value) stream.enqueue(value);
        else
          await new Promise((_, reject) =>
            init.signal?.addEventListener("abort", () => reject(init.signal?.reason)),
          );
      },
      cancel: () => void open--,
    });
    return new Response(body, first);
  };
  for await (const event of following(endless)) if (event.kind === "transition") break;
  expect(open).toBe(0);
  const stop = new AbortController();
  const reason = new Error("the page was left");
  const pawl = clientOf(hasty({ url: URL_OF_API, token: TOKEN, fetch: endless }));
  const read = async () => {
    for await (const _ of pawl.task("t").events({ signal: stop.signal })) stop.abort(reason);
  };
  expect(await read().catch((error: unknown) => error)).toBe(reason);
});

test("an answer that is no stream, or a refusal, is thrown, and not asked for again", async () => {
  let asked = 0;
  const answering = (response: () => Response): Fetch => {
    return async () => {
      asked++;
      return response();
    };
  };
  const events = (response: () => Response) => wrongOf(all(following(answering(response))));
  expect(await events(() => json({ ok: true }))).toMatchObject({ code: "foreign_answer" });
  expect(await events(() => problem("task_unknown", 404))).toMatchObject({ code: "task_unknown" });
  expect(await events(() => problem("unauthorised", 401))).toMatchObject({ code: "unauthorised" });
  const broken = "event: transition\nid: x\ndata: {\n\n";
  const stream = () => new Response(broken, { headers: { "content-type": "text/event-stream" } });
  expect(await events(stream)).toMatchObject({ code: "foreign_answer" });
  expect(asked).toBe(4);
});

/** A task that is over at its so manieth look. */
function ending(looks: number, end: object, events: () => Response | Promise<Response>) {
  const asked = { looks: 0, events: 0 };
  const wire: Fetch = async (url) => {
    if (!url.endsWith("/events")) return json(++asked.looks < looks ? { state: "running" } : end);
    asked.events++;
    return events();
  };
  const connection = hasty({ url: URL_OF_API, token: TOKEN, fetch: wire });
  return { asked, task: clientOf(connection).task("t"), slept: connection.slept };
}

test("where streams can't be had, the result is asked for now and then", async () => {
  const done = { state: "completed", result: { n: 1 } };
  const html = () => new Response("<p>no streams here</p>", { headers: { "content-type": "text/html" } });
  const behind = ending(20, done, html);
  expect(await behind.task.result()).toEqual({ n: 1 });
  expect(behind.asked).toEqual({ looks: 20, events: 1 });
  expect(Math.max(...behind.slept)).toBeGreaterThan(4_000);
  expect(Math.max(...behind.slept)).toBeLessThanOrEqual(10_000);
  // Too many are open for now: tried again.
  const busy = ending(5, done, () => problem("too_many_requests", 429, { "retry-after": "3" }));
  expect(await busy.task.result()).toEqual({ n: 1 });
  expect(busy.asked).toEqual({ looks: 5, events: 4 });
  expect(Math.min(...busy.slept)).toBe(3_000);
  const away = ending(3, done, () => Promise.reject(new TypeError("fetch failed")));
  expect(await away.task.result()).toEqual({ n: 1 });
  const refused = ending(3, done, () => problem("unauthorised", 401));
  expect(await wrongOf(refused.task.result())).toMatchObject({ code: "unauthorised" });
});

test("a wait outlives an API that is away for longer than patience, if it was told to", async () => {
  const done = { state: "completed", result: 7 };
  const away = async (timeout?: string) => {
    let now = 0;
    const wire: Fetch = async (url) => {
      if (now > 300_000) return json(done);
      return url.endsWith("/events") || now > 0
        ? problem("store_unavailable", 503)
        : json({ state: "running" });
    };
    const connection = hasty({ url: URL_OF_API, token: TOKEN, fetch: wire });
    const sleep: typeof connection.sleep = async (ms, signal) => {
      now += ms;
      await connection.sleep(ms, signal);
    };
    return clientOf({ ...connection, sleep })
      .task("t")
      .result(timeout === undefined ? {} : { timeout });
  };
  expect(await away("10m")).toBe(7);
  expect(await wrongOf(away())).toMatchObject({ code: "store_unavailable" });
});

test("a task without a result says why", async () => {
  const failed = ending(1, { state: "failed", error: { code: "fatal", message: "no" } }, () => json({}));
  const wrong = await failed.task.result().catch((error: unknown) => error);
  expect(wrong).toBeInstanceOf(NoResult);
  expect(wrong).toMatchObject({ name: "NoResult", id: "t", state: "failed", code: "fatal", message: "no" });
  const gone = ending(1, { state: "cancelled" }, () => json({}));
  expect(await gone.task.result().catch((error: unknown) => error)).toMatchObject({ code: "cancelled" });
});

test("a wait has an end, after which the task goes on", async () => {
  const silent = () =>
    new Response(new ReadableStream({ pull: () => new Promise(() => {}) }), {
      headers: { "content-type": "text/event-stream" },
    });
  const { task } = ending(1_000, {}, silent);
  const wrong = await wrongOf(task.result({ timeout: "30ms" }));
  expect(wrong).toMatchObject({
    code: "timed_out",
    detail: "Task t is still running after 30ms. It goes on: ask again later",
  });
  expect(await wrongOf(task.result({ timeout: "soon" }))).toMatchObject({ code: "client_invalid" });
});
