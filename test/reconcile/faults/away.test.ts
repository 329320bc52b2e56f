import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../../shared/reconcile/reconcile.ts";
import { agentOf, bench } from "../../support/bench.ts";
import { inSlices, namesOf, patched, reconciled } from "../../support/reconciling.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;
/** One step, so that each has a journal to be read. */
const stepper = agentOf(({ step }) => step("s", () => 1));
const away = () => Promise.reject(new PawlError("store_unavailable", "no answer"));

test("a journal whose answers are lost seven times in a row is read, and nothing is said of it", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  await b.submit({}, { id: "a" });
  await b.drain();
  const { getHead } = b.deps.store;
  let lost = 0;
  patched(b, { getHead: (id) => (++lost <= 7 ? away() : getHead(id)) });
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  expect(lost).toBe(8);
});

test("a journal that can't be read ends nothing: it is named, also where each slice has time for one try", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  for (const id of ["a", "bad", "c"]) await b.submit({}, { id });
  await b.drain();
  const { getHead, get } = b.deps.store;
  let tries = 0;
  patched(b, { getHead: (id) => (id === "bad" && ++tries ? away() : getHead(id)) });
  const done = await reconciled(b.deps);
  expect(namesOf(done)).toEqual(["journal_missing bad"]);
  expect(done.report.documents).toBe(3);
  expect(tries).toBeLessThan(10);

  for (const id of ["a", "bad", "c"]) await b.submit({}, { id });
  tries = 0;
  // Told to stop at each try.
  let stop = new AbortController();
  const stopping = () => {
    tries++;
    stop.abort();
    return away();
  };
  patched(b, { getHead: (id) => (id === "bad" ? stopping() : getHead(id)) });
  let calls = 0;
  for (let isDone = false; !isDone; calls++) {
    expect(calls).toBeLessThan(20);
    stop = new AbortController();
    const options = { repair: false, writers, slice: { goOn: () => {} } };
    const again = await reconcile(b.deps, stop.signal, options);
    if (again) expect(namesOf(again)).toEqual(["journal_missing bad"]);
    isDone = again !== undefined;
  }
  expect(tries).toBe(8);

  // It is the store that is away: nothing is said of any journal.
  for (const id of ["a", "bad", "c"]) await b.submit({}, { id });
  patched(b, { getHead: away, get: away });
  let goesOn = 0;
  const slice = { goOn: () => void goesOn++ };
  expect(await reconcile(b.deps, never, { repair: false, writers, slice })).toBeUndefined();
  expect(goesOn).toBe(0);
  expect(b.deps.logged.map(({ event }) => event)).toContain("reconcile.cut");
  await expect(reconcile(b.deps, never, { repair: false, writers })).rejects.toThrow("no answer");
  patched(b, { getHead, get });
  const last = await reconciled(b.deps);
  expect(last.report.findings.named.filter(({ subject }) => subject !== "bad")).toEqual([]);
  expect(b.deps.logged.filter(({ event }) => event === "reconcile.resumed").length).toBeGreaterThan(1);
});

test("a store that fails now and then costs a few tries, not the reconciliation", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  for (let i = 0; i < 8; i++) await b.submit({}, { id: `t${i}` });
  await b.drain();
  const { store } = b.deps;
  let asked = 0;
  const shaky = <T extends unknown[], R>(work: (...args: T) => Promise<R>) => {
    return (...args: T): Promise<R> => (++asked % 3 === 0 ? (away() as Promise<R>) : work(...args));
  };
  patched(b, {
    pageSize: 3,
    list: shaky(store.list),
    getHead: shaky(store.getHead),
    getPart: shaky(store.getPart),
    getText: shaky(store.getText),
    putText: shaky(store.putText),
    putRecord: shaky(store.putRecord),
  });
  const done = await inSlices(b.deps, 12);
  expect(namesOf(done)).toEqual([]);
  expect(total(done.report.agents)).toMatchObject({ created: 8, completed: 8 });
});
