import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { cancel } from "../../../shared/dispatch/operate.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { serve } from "../../../shared/runner/serve.ts";
import { streamName } from "../../../shared/task/names.ts";
import { agentOf, bench } from "../../support/bench.ts";
import { ahead, namesOf, patched, reconciled } from "../../support/reconciling.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTE = 60_000;
const echo = agentOf(() => "done");
const kinds = [
  { kind: "nats-kv" as const, here: true },
  { kind: "firestore-rest" as const, here: hasEmulator },
];
const never = new AbortController().signal;

/** What ends, or comes, at the boundary between two reports is counted in one of them. */
describe.each(kinds)("between two reports, $kind", ({ kind, here }) => {
  test.skipIf(!here)("a task cancelled in its queue, whose message leaves it after the report", async () => {
    await using b = await bench(nats, kind, echo);
    for (const id of ["a", "b", "c"]) await b.submit({}, { id });
    for (const id of ["a", "b"]) await cancel(b.deps, id);
    ahead(b, 10 * MINUTE);
    const first = total((await reconciled(b.deps)).report.agents);
    expect(first).toMatchObject({ created: 3, cancelled: 2, classes: { queued: 3 } });
    await b.drain();
    ahead(b, 20 * MINUTE);
    const second = await reconciled(b.deps);
    expect(namesOf(second)).toEqual([]);
    expect(total(second.report.agents)).toMatchObject({
      created: 3,
      cancelled: 2,
      completed: 1,
      classes: { cancelled: 2, completed: 1, queued: 0 },
    });
  });

  test.skipIf(!here)("tasks cancelled before they were ever dispatched, by whatever clock", async () => {
    await using b = await bench(nats, kind, echo);
    const later = (id: string) => b.submit({}, { id, at: Date.now() + 86_400_000 });
    await later("a");
    await cancel(b.deps, "a");
    await reconciled(b.deps);
    // Its publisher's clock is behind by an hour.
    ahead(b, -60 * MINUTE);
    await later("b");
    await cancel(b.deps, "b");
    ahead(b, 0);
    await reconciled(b.deps);
    // Somebody submits the first one once more.
    await later("a");
    const last = await reconciled(b.deps);
    expect(namesOf(last)).toEqual([]);
    expect(total(last.report.agents)).toMatchObject({
      created: 2,
      cancelled: 2,
      duplicates: { document: 1 },
    });
  });

  test.skipIf(!here)("an agent whose queue was made while a report was being written", async () => {
    await using b = await bench(nats, kind, echo);
    await b.submit({}, { id: "a" });
    await b.drain();
    await reconciled(b.deps);
    const { store } = b.deps;
    let isMade = false;
    patched(b, {
      changes: async (...args) => {
        if (!isMade) {
          isMade = true;
          await b.deps.bus.ensure({ ...b.queue, agent: "young" });
          await submit(b.deps, { agent: "young", lanes: 1, id: "y", input: {} });
          await serve({ ...b.deps, store }, { name: "young", agent: echo, mode: "drain", stop: never });
        }
        return store.changes(...args);
      },
    });
    const second = await reconciled(b.deps);
    expect(namesOf(second)).toEqual([]);
    patched(b, { changes: store.changes });
    const third = await reconciled(b.deps);
    expect(namesOf(third)).toEqual([]);
    expect(third.report.agents.young).toMatchObject({ created: 1, completed: 1, executions: 1 });
    expect(total(third.report.agents)).toMatchObject({ created: 2, completed: 2, classes: { completed: 2 } });
  });

  test.skipIf(!here)("a queue that was made, drained and deleted since the last report", async () => {
    await using b = await bench(nats, kind, echo);
    await reconciled(b.deps);
    const brief = { ...b.queue, agent: "brief" };
    await b.deps.bus.ensure(brief);
    await submit(b.deps, { agent: "brief", lanes: 1, id: "x", input: {} });
    await serve(b.deps, { name: "brief", agent: echo, mode: "drain", stop: never });
    await (await jetstreamManager(b.deps.nc)).streams.delete(streamName(brief));
    await reconciled(b.deps);
    const { report } = await reconciled(b.deps);
    expect(report.agents.brief).toMatchObject({ created: 1, completed: 1, executions: 1 });
  });

  test.skipIf(!here)("duplicates of a task that was over, while a report is being written", async () => {
    await using b = await bench(nats, kind, echo);
    ahead(b, -60 * MINUTE);
    await b.submit({}, { id: "a" });
    await b.drain();
    ahead(b, 0);
    await reconciled(b.deps);
    const { store } = b.deps;
    let times = 0;
    const again = () => submit({ ...b.deps, store }, { agent: "tested", lanes: 1, id: "a", input: {} });
    patched(b, {
      changes: async (...args) => {
        if (times++ === 0)
          for (let i = 0; i < 3; i++) expect(await again()).toMatchObject({ kind: "already" });
        return store.changes(...args);
      },
    });
    await again();
    await reconciled(b.deps);
    patched(b, { changes: store.changes });
    await again();
    const { report } = await reconciled(b.deps);
    expect(total(report.agents)).toMatchObject({ created: 1, completed: 1, duplicates: { document: 5 } });
  });
});

test("a stream that was made anew: what came before and after it is counted, each task once", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (const id of ["a", "b", "c"]) await b.submit({}, { id });
  await b.drain();
  await reconciled(b.deps);
  for (const id of ["d", "e"]) await b.submit({}, { id });
  await b.drain();
  await (await jetstreamManager(b.deps.nc)).streams.delete(streamName(b.queue));
  await b.deps.bus.ensure(b.queue);
  for (const id of ["x", "y"]) await b.submit({}, { id });
  await b.drain();
  const { report } = await reconciled(b.deps);
  expect(total(report.agents)).toMatchObject({ created: 7, completed: 7, executions: 7 });
});
