import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Task } from "../../shared/task/document.ts";
import { agentOf, bench } from "../support/bench.ts";
import { ahead, namesOf, reconciled } from "../support/reconciling.ts";
import { raw } from "../support/servers/raw.ts";
import { testNats } from "../support/servers/stores.ts";

// Documents without a seal, each field of which is of its kind, and which nobody of Pawl would write.

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const odd: Record<string, readonly [object, string]> = {
  "more pages of settlements than there can be": [{ settledPages: 4e9 }, "altered odd"],
  "an agent that no queue can be named by": [{ agent: "a b" }, "unreadable odd"],
};

test.each(Object.entries(odd))("one with %s is named, and stops nobody", async (_, [change, finding]) => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => 1),
  );
  await b.submit({}, { id: "later", at: Date.now() + 1_000 });
  const { seal: _seal, ...task } = await b.task("later");
  await (await raw(b.deps, undefined)).putDocument("odd", { ...task, id: "odd", ...change } as Task);
  ahead(b, 3_600_000);
  const names = namesOf(await reconciled(b.deps, { repair: true }));
  expect(names).toContain(finding);
  expect(names).toContain("overdue later");
  expect((await b.task("later")).state).toBe("dispatched");
});
