import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import { submitted } from "../../../shared/task/create.ts";
import type { Task } from "../../../shared/task/document.ts";
import { apply } from "../../../shared/task/transitions.ts";
import { testNats, wired, world } from "../../support/servers/stores.ts";

const AGENT = "a";
const PAGE = 20;
const DAY = 86_400_000;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "test" });

function dispatched(id: string): Task {
  const { stamp, by } = mark();
  return submitted({ id, agent: AGENT, lane: 0, input: {}, inputHash: "h", at: Date.now(), stamp, by }, "Q");
}

/** Every second task is over. */
async function create(store: TaskStore, i: number): Promise<void> {
  const task = dispatched(`t${i}`);
  const written = await store.create(task);
  if (i % 2 === 1 || written.kind !== "written") return;
  const holder = { queue: "Q", seq: 1, token: "t", runner: "r", via: "s", lease: 10 };
  const running = apply(task, { type: "claim", ...holder }, mark());
  const over = apply(running, { type: "complete", result: 1, expiresAt: Date.now() + 1 }, mark());
  await store.replace(over, written.revision);
}

/** What a store is asked for at the server, by somebody else's ears: subjects, and the filters of consumers. */
async function asked(count: number) {
  await using deps = await wired(world(nats, "nats-kv").config);
  await using ears = await wired(world(nats, "nats-kv").config);
  await Promise.all(Array.from({ length: count }, (_, i) => create(deps.store, i)));
  const subjects: string[] = [];
  const filters: string[] = [];
  ears.nc.subscribe("$JS.API.>", {
    callback: (_, message) => {
      const { subject } = message;
      if (!subject.includes(`KV_${deps.settings.namespace}-tasks`)) return;
      subjects.push(subject);
      if (!subject.startsWith("$JS.API.CONSUMER.CREATE.")) return;
      const { config } = message.json<{ config: { filter_subject?: string; filter_subjects?: string[] } }>();
      filters.push(...[config.filter_subject ?? []].flat(), ...(config.filter_subjects ?? []));
    },
  });
  /** The server has passed on all that was asked. */
  const heard = async () => {
    await deps.nc.flush();
    await ears.nc.flush();
  };
  const during = async (look: () => Promise<unknown>) => {
    await heard();
    subjects.length = 0;
    filters.length = 0;
    await look();
    await heard();
    return { requests: subjects.length, filters: [...filters] };
  };
  const { cursor } = await deps.store.list({}, PAGE);
  const range = { after: 0, until: Date.now() + DAY };
  return {
    first: await during(() => deps.store.list({}, PAGE)),
    next: await during(() => deps.store.list({}, PAGE, cursor)),
    due: await during(() => deps.store.due(AGENT, "dispatched", range, PAGE)),
    expiry: await during(() => deps.store.expire(Date.now() + 91 * DAY, count)),
  };
}

test("pages of a list cost as much however many documents there are; neither they nor sweeps nor expiry have the server count the bucket", async () => {
  const few = await asked(60);
  const many = await asked(300);
  for (const look of ["first", "next"] as const) {
    expect(many[look].filters).toEqual([]);
    expect(many[look].requests).toBe(few[look].requests);
    expect(many[look].requests).toBeLessThanOrEqual(10);
  }
  // Keys of the index alone, which are few.
  expect(many.due.filters.every((filter) => filter.includes(".due."))).toBe(true);
  expect(many.expiry.filters).toEqual([]);
  expect(many.expiry.requests).toBeGreaterThan(150);
});
