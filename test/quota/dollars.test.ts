import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf, bench } from "../support/bench.ts";
import { MODEL } from "../support/http/asking.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** At $2 and $10 for a million tokens: $0.30 a turn. */
const turn = {
  content: [{ type: "text" as const, text: "A catch." }],
  usage: { input_tokens: 100_000, output_tokens: 10_000 },
};
const writer = agentOf(({ llm }) => llm("write", { model: MODEL, prompt: "What is it?", maxTokens: 20_000 }));

test("what a task's turns spend stops the next submits of its owner, then of its agent, that day", async () => {
  await using b = await bench(nats, "nats-kv", writer, {
    ownerQuota: { usd: 0.25 },
    agentQuota: { usd: 0.5 },
  });
  Object.assign(b.deps, { model: scripted(() => turn) });
  const submit = (owner: string, id: string) => b.submit({}, { id, meta: { owner } });
  const done = async () => {
    expect(await b.drain()).toEqual({ completed: 1 });
    await b.deps.meter.flush();
    // What was read before is kept for five seconds.
    Object.assign(b.deps, { store: { ...b.deps.store } });
  };
  const refused = (message: string) => ({
    code: "quota_exceeded",
    message: expect.stringContaining(message),
    after: expect.any(Number),
  });
  await submit("ann", "a1");
  await done();
  await expect(submit("ann", "a2")).rejects.toMatchObject(
    refused("owner:ann has 0.3 of the 0.25 dollars spent since midnight UTC"),
  );
  await submit("bob", "b1");
  await done();
  await expect(submit("cid", "c1")).rejects.toMatchObject(refused("agent:tested has 0.6 of the 0.5 dollars"));
});
