import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { labelsOf, timeOf } from "../../infra/cli/tasks/given.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import { findToken } from "../../shared/web/tokens.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { tempAgents } from "../support/temp-agents.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
const { agentModule } = inject("programs");
// Known by their files; what they do in these tests is the stage's own.
for (const name of ["asks", "works", "idles"])
  writeFileSync(
    join(agents, `${name}.ts`),
    `import { defineAgent } from "${agentModule}";\nexport default defineAgent({ run: ({ id }) => id });\n`,
  );

async function stage() {
  const w = world(nats, "nats-kv");
  const wire = await wired(w.config);
  const deps = { ...wire, lanesOf: () => 1 };
  for (const agent of ["asks", "works", "gone"])
    await ensureQueue(deps, queueOf(deps, { agent, lane: 0 }), "create");
  const agent = defineAgent({
    async run({ id, approval, waitFor, submit: child }) {
      if (id === "parent") return (await child("works", {}, { key: "one" })).result();
      if (id === "both")
        return Promise.all([
          approval("it's fine", { summary: "First\n  second\u001b[2J\r\nthird" }),
          waitFor("paid"),
        ]);
      if (id === "broken") throw new Error("one\ntwo");
      return approval("reply", { summary: "May I?" });
    },
  });
  return {
    deps,
    run: async (...args: string[]) => {
      const command = pawl(w, args, { PAWL_AGENTS_DIR: agents });
      return { code: await command.exited, text: command.text() };
    },
    put: async (id: string, name = "asks") => {
      await submit(deps, { agent: name, lanes: 1, id, input: {} });
      await serve(deps, { name, agent, mode: "drain", stop: new AbortController().signal });
    },
    task: async (id: string) => (await wire.store.get(id))?.task,
    [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose](),
  };
}

test("an answer under a name that nobody waits for is refused, and kept only with --early", async () => {
  await using s = await stage();
  await s.put("sup-3");
  for (const verb of ["approve", "reject"])
    expect(await s.run(verb, "sup-3", "replyy")).toMatchObject({
      code: 1,
      text: expect.stringMatching(
        /Task sup-3 waits for approval "reply", and not for approval "replyy"\n.*--early.*#signal_unasked/,
      ),
    });
  expect((await s.run("signal", "sup-3", "reply", "--json")).text).toContain('"code":"signal_unasked"');
  expect(await s.task("sup-3")).toMatchObject({ state: "waiting", signals: [] });
  expect(await s.run("approve", "sup-3", "later", "--early")).toEqual({
    code: 0,
    text: "sup-3 is waiting\n",
  });
  expect((await s.task("sup-3"))?.signals).toMatchObject([{ name: "approval:later" }]);
  // The right one goes on; said again, it is what was said before, and no mistake.
  for (const state of ["dispatched", "dispatched"])
    expect(await s.run("approve", "sup-3", "reply")).toEqual({ code: 0, text: `sup-3 is ${state}\n` });
  // Nobody waits any more.
  expect(await s.run("signal", "sup-3", "paid")).toMatchObject({
    code: 1,
    text: expect.stringMatching(
      /Task sup-3 is dispatched and waits for nothing now, and not for event "paid"/,
    ),
  });
});

test("status names a command that works for each thing that is waited for, and shows a summary's lines as lines", async () => {
  await using s = await stage();
  await s.put("both");
  const { text } = await s.run("status", "both");
  expect(text).toContain(
    [
      "waits for   approval it's fine (pawl approve|reject both 'it'\\''s fine')",
      "            paid (pawl signal both paid)",
      "            First",
      "              second\\u001b[2J",
      "            third",
      "",
    ].join("\n"),
  );
  await s.put("parent");
  const child = (await s.task("parent")) as { waitingFor?: string[] };
  const id = child.waitingFor?.[0]?.slice("child:".length);
  expect((await s.run("status", "parent")).text).toContain(`waits for   child ${id} (pawl status ${id})\n`);
  expect(await s.run("status", `${id}`)).toMatchObject({ code: 0 });
  // In a list each is one line.
  await s.put("broken");
  const listed = (await s.run("top", "--once")).text;
  expect(listed).toMatch(/ First second\\u001b\[2J third$/m);
  expect((await s.run("status", "broken")).text).toMatch(/^last error +handler_failed: one\n {12}two$/m);
});

test("an agent's name is checked, but for one that is gone and has left tasks", async () => {
  await using s = await stage();
  const unknown = {
    code: 2,
    text: expect.stringMatching(/No agent "nope" in .*There are: asks, idles, works/),
  };
  for (const args of [
    ["tasks", "--agent", "nope"],
    ["dlq", "ls", "--agent", "nope"],
    ["token", "create", "--owner", "shop", "--agents", "asks,nope"],
  ])
    expect(await s.run(...args), args.join(" ")).toMatchObject(unknown);
  expect(await s.run("tasks", "--agent", "idles")).toEqual({ code: 0, text: "no tasks\n" });
  await s.put("old", "gone");
  expect((await s.run("tasks", "--agent", "gone")).text).toContain("old");
  expect(await s.run("dlq", "ls", "--agent", "gone")).toEqual({ code: 0, text: "no dead letters\n" });
  const made = await s.run("token", "create", "--owner", "shop", "--agents", "asks,works", "--json");
  const { token } = JSON.parse(made.text) as { token: string };
  expect(await findToken(s.deps.store, token)).toMatchObject({ agents: ["asks", "works"] });
});

test("submit --at and --label: for later, and with labels", async () => {
  await using s = await stage();
  const at = "2199-12-24T18:00:00+01:00";
  const later = await s.run(
    "submit",
    "asks",
    "{}",
    "--id",
    "xmas",
    "--at",
    at,
    "--label",
    "team=a",
    "--label",
    "x=b=c",
  );
  expect(later).toMatchObject({
    code: 0,
    text: expect.stringContaining("accepted xmas, for 2199-12-24T17:00:00.000Z\n"),
  });
  expect(await s.task("xmas")).toMatchObject({
    state: "scheduled",
    dueAt: Date.parse(at),
    meta: { labels: { team: "a", x: "b=c" } },
  });
  const before = Date.now();
  expect(await s.run("submit", "asks", "{}", "--id", "soon", "--at", "90m", "--json")).toMatchObject({
    code: 0,
  });
  const { dueAt = 0 } = (await s.task("soon")) as { dueAt?: number };
  expect(dueAt - before).toBeGreaterThanOrEqual(90 * 60_000);
  expect(dueAt - Date.now()).toBeLessThanOrEqual(90 * 60_000);
  expect(await s.run("submit", "asks", "{}", "--at", "tomorrow")).toMatchObject({
    code: 2,
    text: expect.stringMatching(/--at is "tomorrow"; it should be a time with its offset/),
  });
});

test("times and labels that can't be meant are refused", () => {
  for (const wrong of [
    "tomorrow",
    "2026-12-24T18:00:00",
    "2026-12-24",
    "9999-12-31T23:59:59-01:00",
    "1e9d",
    "",
  ])
    expect(() => timeOf(wrong), wrong).toThrow(expect.objectContaining({ code: "usage" }));
  expect(timeOf("2026-12-24T18:00Z")).toBe(Date.UTC(2026, 11, 24, 18));
  const many = Array.from({ length: 17 }, (_, i) => `l${i}=x`);
  for (const wrong of [["team"], ["=a"], [`a=${"x".repeat(600)}`], [`${"x".repeat(600)}=a`], many])
    expect(() => labelsOf(wrong), wrong[0]).toThrow(expect.objectContaining({ code: "usage" }));
  expect(labelsOf([])).toBeUndefined();
  expect(Object.entries(labelsOf(["__proto__=a", "b=", "c=d=e"]) ?? {})).toEqual([
    ["__proto__", "a"],
    ["b", ""],
    ["c", "d=e"],
  ]);
});

test("run: several agents in one process, or all", async () => {
  await using s = await stage();
  for (const [id, agent] of [
    ["a-1", "asks"],
    ["w-1", "works"],
    ["w-2", "works"],
  ] as const)
    await submit(s.deps, { agent, lanes: 1, id, input: {} });
  const once = await s.run("run", "works", "asks", "works", "--once", "--json");
  const answers = once.text
    .split("\n")
    .flatMap((line) => (line.includes('"handled"') && line.startsWith('{"agent"') ? [JSON.parse(line)] : []));
  expect(answers).toHaveLength(2);
  for (const agent of ["asks", "works"])
    expect(answers).toContainEqual({ agent, stopped: false, handled: { completed: 1 } });
  const all = await s.run("run", "--all", "--drain");
  expect(all.code).toBe(0);
  expect(all.text).toContain("works: 1 completed\n");
  expect(all.text).toContain("asks: nothing to do\n");
  expect(all.text).toContain("idles: nothing to do\n");
  for (const id of ["a-1", "w-1", "w-2"])
    expect(await s.task(id)).toMatchObject({ state: "completed", result: id });
  expect(await s.run("run", "works", "nope")).toMatchObject({
    code: 2,
    text: expect.stringMatching(/No agent "nope"/),
  });
});

test("where agents are kept apart, nobody chooses an id of the form that they make up", async () => {
  const apart = world(nats, "nats-kv", { isolation: "documents" });
  for (const id of ["c-1", "stray-1"]) {
    const command = pawl(apart, ["submit", "works", "{}", "--id", id], { PAWL_AGENTS_DIR: agents });
    expect(await command.exited).not.toBe(0);
    expect(command.text()).toContain("has the form of ids that Pawl makes up");
  }
});
