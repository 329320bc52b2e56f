import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type AgentContext, Fatal } from "../../shared/agent.ts";
import { NoResult } from "../../shared/client.ts";
import { agentOf } from "../support/bench.ts";
import { callingStage } from "../support/http/calling.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Of the API, what callers have no need of. */
const LEFT_OUT = {
  "GET /metrics": "text for Prometheus, which asks by itself",
  "GET /v1/openapi.json": "for machines that make clients",
};

async function act({ input, step, approval, waitFor, effect, log }: AgentContext<unknown>) {
  const { how } = input as { how?: string };
  log(`asked for ${how}`);
  await step("read", () => 1);
  if (how === "fail") throw new Fatal("no such repository");
  if (how === "ask") return { by: (await approval("go", { summary: "Go?" })).by };
  if (how === "wait") return { paid: await waitFor("paid") };
  if (how !== "doubt") return { n: 1 };
  return effect("post", {
    run: () => {
      throw new Error("the connection was reset");
    },
  });
}

const stage = () => callingStage(nats, act);
const failureOf = (result: Promise<unknown>) => result.catch((error: unknown) => error);

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) found.push(one);
  return found;
}

test("every operation of the served document has its method, and each fits the document", async () => {
  await using s = await stage();
  const pawl = s.client();
  const submit = (how: string, id: string) => pawl.submit("tested", { how }, { id });

  const told = { key: "order 7", labels: { team: "docs" }, orderingKey: "o", at: new Date(0) };
  const done = await pawl.submit("tested", { how: "done" }, told);
  expect(done).toMatchObject({ kind: "accepted", state: "dispatched" });
  const result = done.result();
  await s.drain();
  expect(await result).toEqual({ n: 1 });
  expect(await done.get()).toMatchObject({ state: "completed", meta: { owner: "ann" }, result: { n: 1 } });
  expect((await all(done.events())).at(-1)).toMatchObject({ kind: "end", data: { state: "completed" } });
  expect(await done.logs()).toMatchObject({ count: 1, lines: [{ level: "info", text: "asked for done" }] });

  for (const how of ["ask", "wait", "doubt", "fail"]) await submit(how, how);
  await submit("ask", "no");
  await submit("ask", "stop");
  // An effect that failed without a word is in doubt when it is to be tried again.
  const agent = agentOf(act, { attempts: 2, backoff: { first: "1ms" } });
  await until("doubt is in doubt", async () => {
    await s.drain(agent);
    return (await s.task("doubt")).state === "in_doubt";
  });
  expect(await pawl.task("ask").approve("go", { note: "fine" })).toMatchObject({ state: "dispatched" });
  await pawl.task("no").reject("go");
  await pawl.task("wait").signal("paid", { amount: 3 });
  await pawl.task("wait").signal("later", 1, { early: true });
  expect(await pawl.task("stop").cancel()).toEqual({ id: "stop", state: "cancelled" });
  expect(await pawl.task("doubt").get()).toMatchObject({ state: "in_doubt", effect: "post#1" });
  await pawl.task("doubt").resolve({ happened: true, receipt: { status: 200 } }, { effect: "post#1" });
  await pawl.task("fail").redrive({ from: "read#1" });
  await s.drain();
  expect(await pawl.task("ask").result()).toEqual({ by: "ann" });
  expect(await pawl.task("wait").result()).toEqual({ paid: { amount: 3 } });
  expect(await pawl.task("doubt").result()).toEqual({ status: 200 });
  expect(await failureOf(pawl.task("no").result())).toMatchObject({
    state: "failed",
    code: "approval_rejected",
  });
  expect(await failureOf(pawl.task("stop").result())).toMatchObject({
    state: "cancelled",
    code: "cancelled",
  });
  const failed = await failureOf(pawl.task("fail").result());
  expect(failed).toBeInstanceOf(NoResult);
  expect(failed).toMatchObject({ id: "fail", state: "failed", code: "fatal", message: "no such repository" });
  // A redrive from an entry is an entry itself.
  const kinds = (await pawl.task("fail").journal()).entries.map(({ n, kind }) => `${n} ${kind}`);
  expect(kinds).toEqual(["1 step", "2 redriven", "3 step"]);

  const ids = async (list: AsyncIterable<{ id: string }>) => (await all(list)).map(({ id }) => id).toSorted();
  expect(await ids(pawl.tasks({ pageSize: 2 }))).toEqual(
    ["ask", "doubt", "fail", "no", "stop", "wait", done.id].toSorted(),
  );
  expect(await ids(pawl.tasks({ state: "cancelled" }))).toEqual(["stop"]);
  expect(await ids(pawl.tasks({ label: "team=docs" }))).toEqual([done.id]);
  expect(await ids(pawl.deadLetters({ error: "fatal", agent: "tested", owner: "ann" }))).toEqual(["fail"]);
  const [page] = await all(pawl.tasks({ pageSize: 3 }).pages());
  expect(page?.items).toHaveLength(3);
  const [next] = await all(pawl.tasks({ pageSize: 3 }).pages(page?.cursor));
  expect(next?.items.map(({ id }) => id)).not.toEqual(expect.arrayContaining([page?.items[0]?.id]));
  const since = new Date(Date.now() - 3_600_000);
  const deeds = await all(pawl.audit({ since, actor: "ann" }));
  expect(deeds.map(({ op }) => op)).toEqual(expect.arrayContaining(["approve", "reject", "cancel"]));
  expect((await pawl.agents()).map(({ name }) => name)).toEqual(["tested", "other"]);
  const { paused } = await pawl.pause("tested", { why: "a test" });
  expect(paused).toMatchObject({ why: "a test" });
  expect(await pawl.pause("tested")).toEqual({ agent: "tested", paused, before: paused });
  expect((await pawl.agents())[0]).toMatchObject({ paused });
  expect(await pawl.resume("tested")).toEqual({ agent: "tested", before: paused });
  expect(await pawl.health()).toMatchObject({ ok: true });
  const preview = await pawl.redriveAll({ error: "approval_rejected", dryRun: true });
  expect(preview).toMatchObject({ count: 1, ids: ["no"] });
  expect(await pawl.redriveAll({ error: "approval_rejected", until: preview.until })).toEqual({
    ...preview,
    skipped: [],
  });
  expect(await pawl.cancelAll({ all: true, dryRun: true })).toMatchObject({ ids: ["no"] });
  expect(await pawl.cancelAll({ state: "dispatched" })).toMatchObject({ count: 1, ids: ["no"] });

  const listed = s.operations.map(({ method, path }) => `${method} ${path}`);
  expect([...new Set(s.asked), ...Object.keys(LEFT_OUT)].toSorted()).toEqual(listed.toSorted());
});
