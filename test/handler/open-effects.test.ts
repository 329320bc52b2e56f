import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { AgentContext } from "../../shared/agent.ts";
import { cancel, redrive, resolve, signal } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Task } from "../../shared/task/document.ts";
import { questionOf } from "../../shared/task/signals.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Its effect ends without anyone knowing whether it happened. */
const unsure = ({ effect }: AgentContext<unknown>) =>
  effect("post", {
    run: () => {
      throw new Error("connection reset");
    },
  });

describe("a cancel over an effect that nobody knows the end of asks a person first", () => {
  const inDoubt = async (b: Bench) => {
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "in_doubt", effect: "post#1" });
    await resolve(b.deps, "t", { happened: true });
    await until("it is over", async () => {
      await b.drain();
      return (await b.task("t")).state === "cancelled";
    });
  };

  test("while it is scheduled for its next try", async () => {
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(unsure, { backoff: { first: "1h", longest: "1h" } }),
    );
    await b.submit({}, { id: "t" });
    await b.drain();
    expect((await b.task("t")).state).toBe("scheduled");
    expect(await cancel(b.deps, "t")).toMatchObject({ state: "dispatched" });
    await inDoubt(b);
  });

  test("while it is dispatched", async () => {
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(unsure, { backoff: { first: "1m", longest: "1m" } }),
    );
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await dispatchDue(later(b.deps, 600_000), AGENT)).toBe(1);
    expect(await cancel(b.deps, "t")).toMatchObject({ state: "dispatched" });
    await inDoubt(b);
  });

  test("while it waits", async () => {
    const agent = agentOf(async (context) => {
      await unsure(context).catch(() => {});
      await context.approval("go");
    });
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    await b.drain();
    expect((await b.task("t")).state).toBe("waiting");
    expect(await cancel(b.deps, "t")).toMatchObject({ state: "dispatched" });
    await inDoubt(b);
  });

  test("while it runs, and its handler does not listen", async () => {
    let begun = false;
    const agent = agentOf(({ effect }) =>
      effect("post", {
        run: () => {
          begun = true;
          return new Promise(() => {});
        },
      }),
    );
    await using b = await bench(nats, "nats-kv", agent, { ackWait: 3_000, stopGrace: 300 });
    await b.submit({}, { id: "t" });
    const drained = b.drain();
    await until("it began", async () => begun);
    await cancel(b.deps, "t");
    await drained;
    // Whoever comes next has to wait: the handler may still act.
    expect(await b.task("t")).toMatchObject({ state: "in_doubt", effect: "post#1", released: false });
  });
});

test("a result for which its document has no room left is a dead letter, not lost, and its message is acked", async () => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const agent = agentOf(async () => {
    begun.resolve();
    await go.promise;
    return "x".repeat(200_000);
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  const drained = b.drain();
  await begun.promise;
  const found = await b.deps.store.get("t");
  const signals = [{ name: "huge", value: "y".repeat(900_000), at: 1 }];
  const next = { ...(found?.task as Task), signals, stamp: "x" };
  expect((await b.deps.store.replace(next, found?.revision ?? "")).kind).toBe("written");
  go.resolve();
  expect(await drained).toEqual({ failed: 1 });
  expect(await b.task("t")).toMatchObject({
    state: "failed",
    error: { code: "result_too_large", phase: "result" },
  });
  expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
});

test("a parent that is redriven from scratch has children of its own, and on its journal the same ones", async () => {
  const ids: string[] = [];
  const agent = agentOf(
    async (context) => {
      ids.push((await context.submit(AGENT, { n: 1 }, { key: "only" })).id);
      throw new Error("broken");
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", agent);
  Object.assign(b.deps, { lanesOf: () => 1 });
  await b.submit({}, { id: "t" });
  const once = () => b.drain(agentOf((c) => (c.id === "t" ? agent.run(c) : "child"), { attempts: 1 }));
  await once();
  await redrive(b.deps, "t");
  await once();
  await redrive(b.deps, "t", { fromScratch: true });
  await once();
  expect(new Set(ids).size).toBe(2);
  expect(ids[0]).toBe(ids[1]);
  for (const id of new Set(ids)) expect((await b.task(id)).state).toBe("completed");
});

test("work whose own Msg-Id says that it is another's is refused, and does not run behind its caller's back", async () => {
  let runs = 0;
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => ++runs),
  );
  await b.submit({}, { id: "first", msgId: "order-7" });
  const second = submit(b.deps, { agent: AGENT, lanes: 1, input: {}, id: "second", msgId: "order-7" });
  await expect(second).rejects.toMatchObject({ code: "msg_id_taken" });
  expect(await b.task("second")).toMatchObject({ state: "failed", error: { code: "msg_id_taken" } });
  expect(await dispatchDue(later(b.deps, 600_000), AGENT)).toBe(0);
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(runs).toBe(1);
  // It is a dead letter like any other.
  await redrive(b.deps, "second");
  expect(await b.drain()).toEqual({ completed: 1 });
});

test("an answer to a question that was asked before is refused in the write itself", async () => {
  const agent = agentOf(async (context) => {
    await context.approval("go");
    await unsure(context);
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await b.drain();
  const yes = { approved: true, by: "ann" };
  await expect(signal(b.deps, "t", "approval:go", yes, { question: "another" })).rejects.toMatchObject({
    code: "question_moved",
  });
  expect((await b.task("t")).signals).toEqual([]);
  const asked = questionOf(await b.task("t"));
  await signal(b.deps, "t", "approval:go", yes, { question: asked });
  await expect(
    signal(b.deps, "t", "approval:go", { ...yes, by: "bob" }, { question: asked }),
  ).rejects.toMatchObject({
    code: "question_moved",
  });
  await until("it is in doubt", async () => {
    await b.drain();
    await dispatchDue(later(b.deps, 600_000), AGENT);
    return (await b.task("t")).state === "in_doubt";
  });
  await expect(resolve(b.deps, "t", { happened: true }, { effect: "other#1" })).rejects.toMatchObject({
    code: "question_moved",
  });
  expect(await resolve(b.deps, "t", { happened: true }, { effect: "post#1" })).toMatchObject({
    state: "dispatched",
  });
});

test("one Msg-Id is one operation in whichever lane its tasks would be", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  for (let lane = 0; lane < 4; lane++) await b.deps.bus.ensure({ ...b.queue, lane });
  const send = (id: string) => submit(b.deps, { agent: AGENT, lanes: 4, input: {}, id, msgId: "order-7" });
  expect((await send("first")).kind).toBe("accepted");
  for (const id of ["a", "b", "c", "d"])
    await expect(send(id)).rejects.toMatchObject({ code: "msg_id_taken" });
});
