import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { wrongOf } from "../support/http/answered.ts";
import { callingStage, type Fetch } from "../support/http/calling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const lost = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));
/** What may become of a request. After "before" it has done nothing, after the others the API has handled it. */
const FAULTS = {
  before: lost,
  after: async (handle: () => Promise<Response>) => {
    await handle();
    return lost();
  },
  page: async (handle: () => Promise<Response>) => {
    await handle();
    return new Response("<h1>504 Gateway Time-out</h1>", { status: 504 });
  },
  half: async (handle: () => Promise<Response>) => {
    const answer = await handle();
    return new Response((await answer.text()).slice(0, 10), answer);
  },
} satisfies Record<string, (handle: () => Promise<Response>) => Promise<Response>>;
type Fault = keyof typeof FAULTS;

/** Its first requests meet these faults. */
const faulty =
  (wire: Fetch, faults: Fault[]): Fetch =>
  (url, init) => {
    const fault = faults.shift();
    const handle = () => wire(url, init);
    return fault ? FAULTS[fault](handle) : handle();
  };

test("whatever becomes of answers, a submit makes one task", async () => {
  await using s = await callingStage(nats);
  let runs = 0;
  const tasksOf = async (label: string) => {
    const found: string[] = [];
    for await (const { id } of s.client().tasks({ label })) found.push(id);
    return found;
  };
  const faults = fc.array(fc.constantFrom(...(Object.keys(FAULTS) as Fault[])), { maxLength: 4 });
  const submits = fc.array(faults, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(submits, fc.boolean(), async (all, isOneKey) => {
      const run = `r${++runs}`;
      const told = { labels: { run }, ...(isOneKey && { key: run }) };
      const ids = await Promise.all(
        all.map(async (list) => {
          const { id } = await s.hasty(faulty(s.wire, [...list])).submit("tested", { run }, told);
          return id;
        }),
      );
      const tasks = await tasksOf(`run=${run}`);
      expect(tasks.toSorted()).toEqual([...new Set(ids)].toSorted());
      expect(tasks).toHaveLength(isOneKey ? 1 : all.length);
    }),
    { numRuns: 8 },
  );
  // It is the key that does it: without one, the same makes two.
  const keyless: Fetch = (url, init) => {
    const { "idempotency-key": _, ...headers } = init.headers as Record<string, string>;
    return s.wire(url, { ...init, headers });
  };
  await s.hasty(faulty(keyless, ["after"])).submit("tested", {}, { labels: { run: "keyless" } });
  expect(await tasksOf("run=keyless")).toHaveLength(2);
});

test("a redrive whose answer is lost is not sent again: its task would be done again", async () => {
  await using s = await callingStage(nats, () => {
    throw new Error("broken");
  });
  await s.client().submit("tested", {}, { id: "t" });
  await s.drain();
  expect((await s.task("t")).state).toBe("failed");
  const before = s.asked.length;
  const redrive = s
    .hasty(faulty(s.wire, ["after"]))
    .task("t")
    .redrive();
  expect((await wrongOf(redrive)).detail).toMatch(/Nobody knows whether it was done: look at the task/);
  expect(s.asked.slice(before)).toEqual(["POST /v1/tasks/{id}/redrive"]);
  expect((await s.client().task("t").get()).state).toBe("dispatched");
});

test("whatever becomes of answers, all that match are redriven once, slice by slice", async () => {
  await using s = await callingStage(nats, () => {
    throw new Error("broken");
  });
  const ids = Array.from({ length: 30 }, (_, i) => `t${i}`);
  await Promise.all(ids.map((id) => s.submit({}, { id })));
  await s.drain();
  const which = { error: "attempts_exhausted" };
  const pawl = s.hasty(faulty(s.wire, ["page", "after", "half", "before"]));
  const { count, until } = await pawl.redriveAll({ ...which, dryRun: true });
  expect(count).toBe(30);
  await s.hasty(faulty(s.wire, ["after", "half", "before"])).redriveAll({ ...which, until });
  const tasks = await Promise.all(ids.map((id) => s.task(id)));
  for (const { state, history } of tasks) {
    expect(state).toBe("dispatched");
    expect(history.filter(({ event }) => event === "redrive")).toHaveLength(1);
  }
  // Of no moment that was said, nobody knows what a second one would be about.
  const before = s.asked.length;
  const unsaid = s.hasty(faulty(s.wire, ["after"])).cancelAll({ all: true });
  expect((await wrongOf(unsaid)).code).toBe("no_answer");
  expect(s.asked.slice(before)).toEqual(["POST /v1/tasks/cancel"]);
});

test("a key stands for one request", async () => {
  await using s = await callingStage(nats);
  const pawl = s.client();
  const first = await pawl.submit("tested", { n: 1 }, { key: "order-7" });
  const again = await pawl.submit("tested", { n: 1 }, { key: "order-7" });
  expect([again.id, again.kind]).toEqual([first.id, "already"]);
  expect(await wrongOf(pawl.submit("tested", { n: 2 }, { key: "order-7" }))).toMatchObject({
    code: "idempotency_key_reused",
    status: 422,
  });
});
