import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { redrive, signal } from "../../shared/dispatch/operate.ts";
import { agentOf, bench } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test.each(["removed", "put back"])("a task whose journal was %s does not pay twice", async (how) => {
  const paid: string[] = [];
  const payer = agentOf(async ({ step, effect, waitFor }) => {
    await step("first", () => 1);
    await waitFor("go");
    await effect("pay", { run: (key) => void paid.push(key) });
    await waitFor("end");
  });
  await using b = await bench(nats, "nats-kv", payer);
  await b.submit({}, { id: "t" });
  await b.drain();
  const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
  const early = (await bucket.get("journal.t"))?.string() ?? "";
  await signal(b.deps, "t", "go", true);
  await b.drain();
  expect(paid).toHaveLength(1);
  if (how === "removed") await bucket.purge("journal.t");
  else await bucket.put("journal.t", early);
  await signal(b.deps, "t", "end", true);
  await b.drain();
  expect(paid).toHaveLength(1);
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "journal_altered" } });
  // From scratch it begins anew, by a person's word, and asks for the first answer again.
  await redrive(b.deps, "t", { fromScratch: true });
  await b.drain();
  expect((await b.task("t")).state).toBe("waiting");
});
