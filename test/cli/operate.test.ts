import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Stored } from "../../shared/ports/store.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";
import { clearOfMidnight } from "../support/time/midnight.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
const { agentModule } = inject("programs");
writeFileSync(
  join(agents, "asks.ts"),
  `import { defineAgent } from "${agentModule}";
export default defineAgent({
  async run({ approval, waitFor, effect, input }) {
    if (input.what === "approval") return approval("publish", { summary: "May I?" });
    if (input.what === "event") return waitFor("paid");
    return effect("post", { run: () => { throw new Error("reset"); } });
  },
});\n`,
);

async function stage() {
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "asks", lane: 0 }));
  const env = { PAWL_AGENTS_DIR: agents };
  const run = async (...args: string[]) => {
    const command = pawl(w, args, env);
    return { code: await command.exited, text: command.text() };
  };
  const drain = () => run("run", "asks", "--drain");
  const state = async (id: string) => (await deps.store.get(id))?.task.state;
  return {
    deps,
    run,
    drain,
    state,
    ask: async (id: string, what: string, until: string) => {
      await submit(deps, { agent: "asks", lanes: 1, id, input: { what } });
      for (let i = 0; i < 20 && (await state(id)) !== until; i++) await drain();
      expect(await state(id)).toBe(until);
    },
    [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose](),
  };
}

test("approve and reject: status says how, the task goes on, and its document who said so", async () => {
  await using s = await stage();
  await s.ask("yes", "approval", "waiting");
  const status = await s.run("status", "yes");
  expect(status.text).toContain(
    "waits for   approval publish (pawl approve|reject yes publish)\n            May I?\n",
  );
  expect(await s.run("approve", "yes", "publish", "--by", "ann", "--note", "fine")).toEqual({
    code: 0,
    text: "yes is dispatched\n",
  });
  await s.drain();
  expect((await s.deps.store.get("yes"))?.task).toMatchObject({
    state: "completed",
    result: { by: "ann", note: "fine" },
  });
  await s.ask("no", "approval", "waiting");
  const rejected = await s.run("reject", "no", "publish", "--json");
  expect([rejected.code, JSON.parse(rejected.text)]).toEqual([0, { id: "no", state: "dispatched" }]);
  await s.drain();
  expect((await s.deps.store.get("no"))?.task).toMatchObject({ error: { code: "approval_rejected" } });
});

test("signal: with a value, without one, with a wrong one, for a task that is over or not there", async () => {
  await using s = await stage();
  await s.ask("t", "event", "waiting");
  expect(await s.run("signal", "t", "paid", "{oops")).toMatchObject({
    code: 2,
    text: expect.stringMatching(/The event's value is not JSON/),
  });
  expect(await s.run("signal", "t", "other", "--early")).toMatchObject({ code: 0, text: "t is waiting\n" });
  expect(await s.run("signal", "t", "paid", '{"amount": 3}')).toMatchObject({
    code: 0,
    text: "t is dispatched\n",
  });
  await s.drain();
  expect((await s.deps.store.get("t"))?.task).toMatchObject({ state: "completed", result: { amount: 3 } });
  expect(await s.run("signal", "t", "paid")).toMatchObject({
    code: 1,
    text: expect.stringMatching(/Task t is completed/),
  });
  expect(await s.run("signal", "nobody", "paid")).toMatchObject({
    code: 1,
    text: expect.stringMatching(/no task nobody/),
  });
  expect((await s.run("signal")).code).toBe(2);
});

test("resolve: one of three, and only what is in doubt", async () => {
  await using s = await stage();
  await s.ask("t", "effect", "in_doubt");
  const status = await s.run("status", "t");
  expect(status.text).toMatch(/in doubt {4}effect post#1: .* pawl resolve t --happened\|--did-not\|--fail/);
  for (const args of [[], ["--happened", "--fail"]])
    expect(await s.run("resolve", "t", ...args)).toMatchObject({
      code: 2,
      text: expect.stringMatching(/Choose one of/),
    });
  expect(await s.run("resolve", "t", "--happened", "--receipt", "[")).toMatchObject({ code: 2 });
  expect(await s.run("resolve", "t", "--happened", "--receipt", '{"url": "x"}')).toMatchObject({ code: 0 });
  await s.drain();
  expect((await s.deps.store.get("t"))?.task).toMatchObject({ state: "completed", result: { url: "x" } });
  expect(await s.run("resolve", "t", "--fail")).toMatchObject({
    code: 1,
    text: expect.stringMatching(/nothing about it is in doubt/),
  });
});

test("several at once: counted first, done with --yes, by agent, owner and label; in doubt stays in doubt", async () => {
  await using s = await stage();
  await s.ask("doubt", "effect", "in_doubt");
  const put = (id: string, team: string, owner = "ann") =>
    submit(s.deps, { agent: "asks", lanes: 1, id, input: {}, meta: { owner, labels: { team } } });
  for (const id of ["a1", "a2", "a3"]) await put(id, "a");
  await put("b1", "b");
  await put("b2", "b", "bob");
  const [preview, json, labelled, any, none, letters, ...wrong] = await Promise.all([
    s.run("cancel", "--all", "--label", "team=a"),
    s.run("cancel", "--all", "--json"),
    s.run("tasks", "--label", "team=a", "--json"),
    s.run("tasks", "--label", "team", "--owner", "bob"),
    s.run("tasks", "--label", "team=c", "--limit", "2"),
    s.run("dlq", "redrive", "--all", "--label", "team=a", "--dry-run"),
    s.run("cancel"),
    s.run("cancel", "a1", "--yes"),
    s.run("cancel", "--all", "--agent", "nobody"),
    s.run("dlq", "redrive", "a1", "--dry-run"),
    s.run("tasks", "--state", "running", "--code", "fatal"),
  ]);
  expect(preview.code).toBe(0);
  expect(preview.text).toMatch(
    /a3\n.*a2\n.*a1\n3 tasks match: 3 dispatched\. Nothing was done: --yes cancels them\n$/,
  );
  expect(JSON.parse(json.text)).toMatchObject({ count: 5, states: { dispatched: 5 } });
  expect(JSON.parse(labelled.text).tasks.map(({ id }: { id: string }) => id)).toEqual(["a3", "a2", "a1"]);
  expect(any.text).toMatch(/^\S+ {2}dispatched {2}asks +b2\n$/);
  expect(none.text).toBe("no tasks\n");
  expect(letters).toEqual({ code: 0, text: "no such tasks\n" });
  expect(wrong.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
  expect(await s.state("a1")).toBe("dispatched");
  expect(await s.run("cancel", "--all", "--agent", "asks", "--label", "team=a", "--yes")).toEqual({
    code: 0,
    text: "cancelled, or asked to stop, 3 of 3\n",
  });
  expect(JSON.parse((await s.run("cancel", "--all", "--owner", "ann", "--yes", "--json")).text)).toEqual({
    cancelled: ["b1"],
    refused: [],
  });
  const states = await Promise.all(["a1", "a2", "a3", "b1", "b2", "doubt"].map(s.state));
  expect(states).toEqual([...Array(4).fill("cancelled"), "dispatched", "in_doubt"]);

  // What it cost, and all of the day: of today by what runners have counted.
  await clearOfMidnight();
  const { task, revision } = (await s.deps.store.get("doubt")) as Stored;
  await s.deps.store.replace({ ...task, spent: { ...task.spent, usd: 1.5 }, stamp: "paid" }, revision);
  s.deps.meter.spent?.({ agent: "asks", owner: undefined }, 2);
  await s.deps.meter.flush();
  const top = await s.run("top", "--once");
  expect(top.text).toMatch(/^ {2}doubt {2}asks {2}[\d.]+ m?s {2}\$1\.50 {2}effect post#1$/m);
  expect(top.text).toMatch(/^spent today \(UTC\): asks \$2\.00\ncounted: (?!.*spent )/m);
});

test("new: an agent and its test, once, under a name that is free", async () => {
  await using s = await stage();
  const made = await s.run("new", "fresh-one", "--json");
  expect(JSON.parse(made.text)).toMatchObject({
    agent: "fresh-one",
    files: [expect.any(String), expect.any(String)],
  });
  expect(readFileSync(join(agents, "fresh-one.ts"), "utf8")).toContain(`from "${SHARED}/agent.ts"`);
  expect(readFileSync(join(agents, "fresh-one.test.ts"), "utf8")).toContain(
    'import agent from "./fresh-one.ts"',
  );
  for (const [name, why] of [
    ["fresh-one", /already exists/],
    ["dispatch", /one of Pawl's functions/],
    ["No_Good", /name/],
  ] as const)
    expect(await s.run("new", name)).toMatchObject({ code: 2, text: expect.stringMatching(why) });
});
