import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { TaskPage } from "../../shared/ports/store.ts";
import { sha256 } from "../../shared/values/json.ts";
import { findToken } from "../../shared/web/tokens.ts";
import { raw } from "../support/servers/raw.ts";
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
writeFileSync(
  join(agents, "flaky.ts"),
  `import { defineAgent, Fatal } from "${agentModule}";
export default defineAgent({
  limits: { attempts: 1 },
  run: ({ input }) => {
    if (process.env.MENDED) return "done";
    throw (input as { fatal?: boolean }).fatal ? new Fatal("for good") : new Error("broken");
  },
});\n`,
);

async function stage() {
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "flaky", lane: 0 }));
  const run = async (args: string[], env: Record<string, string> = {}) => {
    const command = pawl(w, args, { PAWL_AGENTS_DIR: agents, ...env });
    return { code: await command.exited, text: command.text() };
  };
  return {
    deps,
    run,
    state: async (id: string) => (await deps.store.get(id))?.task.state,
    [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose](),
  };
}

test("dead letters are listed, and redriven one by one or all of a kind", async () => {
  await using s = await stage();
  expect(await s.run(["dlq", "ls"])).toMatchObject({ code: 0, text: "no dead letters\n" });
  for (const [id, fatal] of [
    ["a", false],
    ["b", false],
    ["c", true],
  ] as const)
    await submit(s.deps, { agent: "flaky", lanes: 1, id, input: { fatal } });
  await s.run(["run", "flaky", "--drain"]);
  const listed = await s.run(["dlq", "ls"]);
  expect(listed.text).toMatch(/failed +flaky +a .*attempts_exhausted: Failed 1 times, at last: broken/);
  expect(listed.text).toContain("3 dead letters");
  const json = await s.run(["dlq", "ls", "--code", "fatal", "--json"]);
  expect(JSON.parse(json.text)).toMatchObject({ id: "c", error: { code: "fatal" } });

  for (const wrong of [[], ["a", "--all"], ["a", "--resume", "--from-scratch"]])
    expect((await s.run(["dlq", "redrive", ...wrong])).code, wrong.join(" ")).toBe(2);
  expect(await s.run(["dlq", "redrive", "nobody"])).toMatchObject({
    code: 1,
    text: expect.stringMatching(/no task nobody/),
  });
  const all = await s.run(["dlq", "redrive", "--all", "--code", "attempts_exhausted", "--json"]);
  expect(JSON.parse(all.text)).toEqual({ redriven: ["a", "b"], refused: [] });
  expect(await s.run(["dlq", "redrive", "c", "--from-scratch"])).toMatchObject({
    code: 0,
    text: "redriven 1 of 1\n",
  });
  expect(await s.run(["dlq", "redrive", "c"])).toMatchObject({
    code: 1,
    text: expect.stringMatching(/is dispatched: only what failed/),
  });
  await s.run(["run", "flaky", "--drain"], { MENDED: "1" });
  for (const id of ["a", "b", "c"]) expect(await s.state(id)).toBe("completed");
  expect((await s.run(["dlq", "redrive", "--all"])).text).toBe("redriven 0 of 0\n");
});

test("tasks are listed by agent and state, page by page", async () => {
  await using s = await stage();
  expect((await s.run(["tasks"])).text).toBe("no tasks\n");
  for (const id of ["a", "b", "c"]) await submit(s.deps, { agent: "flaky", lanes: 1, id, input: {} });
  const first = await s.run(["tasks", "--limit", "2"]);
  const cursor = /more: --cursor (\S+)/.exec(first.text)?.[1] as string;
  expect((await s.run(["tasks", "--cursor", cursor])).text.trim().split("\n")).toHaveLength(1);
  const json = await s.run(["tasks", "--agent", "flaky", "--state", "dispatched", "--json"]);
  expect(JSON.parse(json.text).tasks).toHaveLength(3);
  for (const wrong of [
    ["--state", "odd"],
    ["--limit", "0"],
    ["--limit", "x"],
    ["--cursor", "!"],
  ])
    expect((await s.run(["tasks", ...wrong])).code, wrong.join(" ")).toBe(2);
});

test("cancel from the command line", async () => {
  await using s = await stage();
  await submit(s.deps, { agent: "flaky", lanes: 1, id: "a", input: {} });
  expect(await s.run(["cancel", "a"])).toMatchObject({ code: 0, text: "a is cancelled\n" });
  expect(await s.run(["cancel", "a"])).toMatchObject({
    code: 1,
    text: expect.stringMatching(/Task a is cancelled: it is over/),
  });
});

test("a token is shown once, and only its hash is kept", async () => {
  await using s = await stage();
  const made = await s.run([
    "token",
    "create",
    "--owner",
    "shop",
    "--scope",
    "submit",
    "--agents",
    "flaky",
    "--json",
  ]);
  const { token } = JSON.parse(made.text) as { token: string };
  expect(await findToken(s.deps.store, token)).toMatchObject({
    owner: "shop",
    scopes: ["submit"],
    agents: ["flaky"],
  });
  expect(await findToken(s.deps.store, `${token.slice(0, -1)}_`)).toBeUndefined();
  for (const wrong of [
    [],
    ["--owner", "a b"],
    ["--owner", "x", "--scope", "root"],
    ["--owner", "x", "--agents", "flaky,nope"],
  ])
    expect((await s.run(["token", "create", ...wrong])).code, wrong.join(" ")).toBe(2);
});

test("a token is revoked once, one of an earlier version too", async () => {
  await using s = await stage();
  const { token } = JSON.parse((await s.run(["token", "create", "--owner", "shop", "--json"])).text) as {
    token: string;
  };
  const former = `pawl_${"a".repeat(43)}`;
  const known = JSON.stringify({ owner: "shop", scopes: ["read"], createdAt: 0 });
  await s.deps.store.putPart("__tokens__", sha256(former), known);
  expect((await s.run(["token", "revoke", former])).code).toBe(2);
  expect((await s.run(["token", "move"])).text).toContain("shop");
  for (const one of [token, former]) {
    expect(await findToken(s.deps.store, one)).toMatchObject({ owner: "shop" });
    expect(await s.run(["token", "revoke", one])).toMatchObject({
      code: 0,
      text: expect.stringContaining("revoked"),
    });
    expect(await findToken(s.deps.store, one)).toBeUndefined();
    expect((await s.run(["token", "revoke", one])).code).toBe(2);
  }
});

test("documents that can't be read don't break a list: it says how many and which", async () => {
  await using s = await stage();
  await submit(s.deps, { agent: "flaky", lanes: 1, id: "a", input: {} });
  const past = await raw(s.deps, undefined);
  await past.putTask("odd", "no json");
  await past.putTask("odder", "null");
  const which = '"odder: it is null; it should be an object. odd: it is not JSON"';
  for (const args of [["tasks"], ["dlq", "ls"]]) {
    const { code, text } = await s.run(args);
    expect({ code, text }).toMatchObject({ code: 0 });
    expect(text).toContain(`WARN documents.unreadable count=2 which=${which}`);
  }
  const { text } = await s.run(["tasks", "--json"]);
  const page = JSON.parse(text.split("\n").find((line) => line.startsWith('{"tasks"')) ?? "") as TaskPage;
  expect(page.tasks.map(({ id }) => id)).toEqual(["a"]);
  expect(page.unreadable?.map(({ key }) => key)).toEqual(["odder", "odd"]);
  expect(await s.run(["status", "odd"])).toMatchObject({
    code: 1,
    text: expect.stringContaining("Task odd's document can't be read: it is not JSON") as string,
  });
});
