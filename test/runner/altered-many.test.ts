import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Task } from "../../shared/task/document.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { ahead, patched } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("a sweep comes past more altered documents than fit a page, and dispatches what is due behind them", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => 1),
  );
  const due = Date.now() + 30_000;
  const ids = Array.from({ length: 130 }, (_, i) => `t${i}`);
  for (const [i, id] of ids.entries()) await b.submit({}, { id, at: due + i });
  await b.submit({}, { id: "behind", at: due + 1_000 });
  const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
  for (const id of ids) {
    const there = (await bucket.get(`task.${id}`))?.json<Task>();
    await bucket.put(`task.${id}`, JSON.stringify({ ...there, input: { changed: true } }));
  }
  ahead(b, 60_000);
  let pages = 0;
  const { due: ask } = b.deps.store;
  patched(b, {
    due: (...asked) => {
      if (++pages > 50) throw new Error("it does not end");
      return ask(...asked);
    },
  });
  expect(await dispatchDue(b.deps, AGENT)).toBe(1);
  expect((await b.task("behind")).state).toBe("dispatched");
});
