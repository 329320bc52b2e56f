import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { runAgent } from "../../shared/testing.ts";
import { agentOf, bench, untilAborted } from "../support/bench.ts";
import { dead } from "../support/faults/death.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const given = { ackWait: 2_000, stopGrace: 300 };
const fails = async () => {
  throw new Error("no");
};

test("a branch that fails ends the handler: what waits beside it is told to stop", async () => {
  let reason: unknown;
  const agent = agentOf(
    ({ step, signal: own }) =>
      Promise.all([
        step("slow", () =>
          untilAborted(own).catch((error: unknown) => {
            reason = error;
            throw error;
          }),
        ),
        step("bad", fails),
      ]),
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", agent, given);
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ failed: 1 });
  expect(reason).toMatchObject({ code: "execution_over" });
  expect(await b.task("t")).toMatchObject({
    error: { message: "Failed 1 times, at last: no" },
    released: true,
  });
});

test("one that does not listen holds its lane no longer than that, and the next execution waits for it", async () => {
  const agent = agentOf(({ step }) => Promise.all([step("deaf", () => dead()), step("bad", fails)]), {
    attempts: 2,
    backoff: { first: "1h", longest: "1h" },
  });
  await using b = await bench(nats, "nats-kv", agent, given);
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ retry: 1 });
  expect(await b.task("t")).toMatchObject({
    state: "scheduled",
    released: false,
    stopped: { by: b.deps.runner },
  });
});

test("a wait inside a step is refused also after an await of the step's own", async () => {
  const agent = agentOf(({ step, approval }) =>
    step("outer", async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      await approval("go");
    }),
  );
  expect(await runAgent(agent, {})).toMatchObject({
    state: "failed",
    error: { code: "call_invalid", message: expect.stringMatching(/inside a step, effect or tool/) },
  });
  // With the answer there already, too: it must not depend on who is faster.
  await using b = await bench(nats, "nats-kv", agent, given);
  await b.submit({}, { id: "t" });
  await signal(b.deps, "t", "approval:go", { approved: true, by: "ann" });
  expect(await b.drain()).toEqual({ failed: 1 });
  // Beside a step that is under way a wait is none of its business.
  const beside = agentOf(({ step, waitFor }) =>
    Promise.all([
      step("slow", () => new Promise((resolve) => setTimeout(resolve, 20, "done"))),
      waitFor("x"),
    ]),
  );
  expect(await runAgent(beside, {}, { events: { x: 1 } })).toMatchObject({ state: "completed" });
});

test("an attempt takes an hour at most unless its agent says otherwise", () => {
  expect(defineAgent({ run: () => 1 }).limits.timeout).toBe(3_600_000);
  expect(defineAgent({ limits: { timeout: "3h" }, run: () => 1 }).limits.timeout).toBe(10_800_000);
});

test("an effect in doubt inside a step asks a person, instead of holding the lane", async () => {
  let tries = 0;
  const agent = agentOf(({ step, effect }) =>
    step("outer", () =>
      effect("post", {
        run: () => {
          tries++;
          throw new Error("connection reset");
        },
      }),
    ),
  );
  expect(await runAgent(agent, {})).toMatchObject({ state: "in_doubt" });
  expect(tries).toBe(1);
});
