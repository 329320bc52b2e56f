import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import {
  FORMATS,
  listReports,
  readReport,
  readReportList,
  textName,
} from "../../shared/reconcile/books/reports.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const waiter = agentOf(async ({ input, waitFor }) => {
  if ((input as { waits?: boolean }).waits) await waitFor("x");
});
const never = new AbortController().signal;

/** As earlier versions kept the texts of reports and books: as parts of an id that no task can have. */
function asFormerly({ deps }: Bench): Bench["deps"] {
  const { store } = deps;
  const former: Partial<TaskStore> = {
    putText: (name, text) => store.putPart("__reports__", name, text),
    getText: (name) => store.getPart("__reports__", name),
    removeTexts: (isOld) => store.removeParts("__reports__", isOld),
  };
  return { ...deps, store: { ...store, ...former } };
}

const formerText = ({ deps }: Bench, name: string) => deps.store.getPart("__reports__", name);

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "reports of an earlier version are read, added to, and removed when replaced",
    async () => {
      await using b = await bench(nats, kind, waiter);
      await b.submit({ waits: true }, { id: "waits" });
      await b.drain();
      const { listed } = await reconciled(asFormerly(b));
      const { copy, open } = await readReportList(b.deps.store);
      const names = [
        ...FORMATS.map((format) => textName(listed, format)),
        copy ?? "",
        ...(open?.parts ?? []),
      ];
      expect(names).toHaveLength(5);
      for (const name of names) {
        expect(await b.deps.store.getText(name), name).toBeUndefined();
        expect(await formerText(b, name), name).toBeDefined();
      }
      for (const format of FORMATS)
        expect((await readReport(b.deps.store, format)).text).toBe(
          await formerText(b, textName(listed, format)),
        );
      // Nothing of it is called altered, and the task that it left open is known.
      await b.submit({}, { id: "done" });
      await b.drain();
      const next = await reconciled(b.deps);
      expect([namesOf(next), next.report.runs, next.report.live]).toEqual([
        [],
        2,
        { [AGENT]: { waiting: 1 } },
      ]);
      for (const { name } of await listReports(b.deps.store))
        expect((await readReport(b.deps.store, "md", name)).text).toContain("All 2 sequences explained");
      for (const name of names) expect(await formerText(b, name), name).toBeUndefined();
    },
  );
});

test("a reconciliation that was cut off in an earlier version is gone on with", async () => {
  await using b = await bench(nats, "nats-kv", waiter);
  for (let i = 0; i < 20; i++) await submit(b.deps, { agent: AGENT, lanes: 1, id: `t${i}`, input: {} });
  await b.drain();
  const former = asFormerly(b);
  const slice = { mostCalls: 12, goOn: () => {} };
  let slices = 0;
  while ((await formerText(b, "reconcile-0-0")) === undefined && slices++ < 20)
    expect(await reconcile(former, never, { repair: false, writers, slice })).toBeUndefined();
  b.deps.logged.length = 0;
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  expect(b.deps.logged.map(({ event }) => event)).toContain("reconcile.resumed");
  expect(await formerText(b, "reconcile-0-0")).toBeUndefined();
});
