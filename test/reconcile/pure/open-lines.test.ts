import { expect, test } from "vitest";
import { openLines } from "../../../shared/reconcile/books/open-tasks.ts";
import type { OpenTasks } from "../../../shared/reconcile/books/reports.ts";
import type { Pace } from "../../../shared/reconcile/pace.ts";

const left: OpenTasks = { run: "then", count: 1, parts: ["open-then-1-hash"], pieces: [] };

/** A store without that part, whose list of reports says that another run has left this open. */
const paceOf = (run: string | undefined) => {
  const text = JSON.stringify({ reports: [], marks: {}, ...(run && { open: { ...left, run } }) });
  const store = {
    getText: async () => undefined,
    getPart: async () => undefined,
    getRecord: async () => ({ text, revision: "1" }),
  };
  return { deps: { store } } as unknown as Pace;
};

test("a part that is gone is named, unless another reconciliation has made its report since", async () => {
  expect(await openLines(paceOf("then"), left, 0)).toMatchObject({
    finding: { kind: "books_altered", subject: "open tasks 1" },
  });
  expect(await openLines(paceOf("since"), left, 0)).toEqual({ tasks: [] });
});
