import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { calm, observer } from "../support/observer.ts";
import { next } from "../support/servers/bus.ts";
import { AGENTS, CLI, notes, pawl, recordFile, startProcess } from "../support/servers/runners.ts";
import { type TestWorld, testNats, world } from "../support/servers/stores.ts";

let nats: LocalNats;
let w: TestWorld;
beforeAll(async () => {
  nats = await testNats();
  w = world(nats, "nats-kv", { ackWait: 3_000, stopGrace: 6_000, crashLimit: 2 });
});
afterAll(() => nats.stop());

async function call(args: string[], env: Record<string, string> = {}) {
  // Those that hold no lease need not hurry.
  const runner = pawl(args[0] === "run" ? w : calm(w), args, env);
  const code = await runner.exited;
  return { code, text: runner.text() };
}

describe("submit, run, status", () => {
  test("a task from one end to the other, for people and for machines", async () => {
    const file = await recordFile();
    const env = { TEST_RECORD: file };
    expect(await call(["submit", "recorder", '{"ms": 1}', "--id", "one"])).toMatchObject({
      code: 0,
      text: expect.stringContaining("accepted one"),
    });
    const again = await call(["submit", "recorder", '{"ms": 1}', "--id", "one", "--json"]);
    expect(JSON.parse(again.text)).toEqual({
      id: "one",
      kind: "already",
      state: "dispatched",
      stoppedBy: "window",
    });
    const ran = await call(["run", "recorder", "--once", "--json"], env);
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.text.trim().split("\n").at(-1) as string)).toEqual({
      agent: "recorder",
      stopped: false,
      handled: { completed: 1 },
    });
    expect(await call(["run", "recorder", "--drain"], env)).toMatchObject({
      code: 0,
      text: expect.stringContaining("recorder: nothing to do"),
    });
    const shown = await call(["status", "one"]);
    expect(shown.code).toBe(0);
    for (const line of [/^state +completed$/m, /^fence +1$/m, /#1 completed/, /claim +running +fence 1/])
      expect(shown.text).toMatch(line);
    expect(JSON.parse((await call(["status", "one", "--json"])).text)).toMatchObject({
      id: "one",
      state: "completed",
    });
    expect(notes(file).map((note) => note.what)).toEqual(["start", "end"]);
  });

  test("--once takes one and leaves the rest", async () => {
    const env = { TEST_RECORD: await recordFile() };
    for (const id of ["a", "b"]) await call(["submit", "recorder", "{}", "--id", id]);
    const { text } = await call(["run", "recorder", "--once", "--json"], env);
    expect(JSON.parse(text.trim().split("\n").at(-1) as string).handled).toEqual({ completed: 1 });
    expect((await call(["run", "recorder", "--drain", "--json"], env)).text).toContain(
      '"handled":{"completed":1}',
    );
  });
});

describe("used wrongly: exit code 2, what is wrong, and what to do", () => {
  test.each<[string[], RegExp]>([
    [["frobnicate"], /unknown command 'frobnicate'/],
    [["run"], /Give agents' names, or --all/],
    [["run", "recorder", "--all"], /Give agents' names, or --all/],
    [["run", "recorder", "--once", "--drain"], /exclude each other/],
    [["run", "recorder", "--nope"], /unknown option '--nope'/],
    [["run", "nobody"], /No agent "nobody" in .*There are: .*recorder/],
    [["run", "Not An Agent"], /No agent "Not An Agent" in .*There are: .*recorder/],
    [["submit", "nobody", "{}"], /No agent "nobody"/],
    [["submit", "recorder", "{"], /The input is not JSON/],
    [["submit", "recorder", "7"], /must be a JSON object, not a number/],
    [["submit", "recorder", "{}", "--id", "a b"], /Task id "a b" can't be used/],
    [["submit", "recorder", "{}", "--id", ""], /Task id "" can't be used/],
    [
      ["submit", "recorder", `{"x":"${"y".repeat(100_000)}"}`],
      /100008 bytes; the limit is 90000 \(PAWL_INPUT_LIMIT\)/,
    ],
    [["status"], /missing required argument 'id'/],
    [["status", "a/b"], /Task id "a\/b" can't be used/],
  ])("%j", async (args, says) => {
    const { code, text } = await call(args, { PAWL_INPUT_LIMIT: "90000" });
    expect(text).toMatch(says);
    expect(code).toBe(2);
  });

  test.each<[Record<string, string>, RegExp]>([
    [{ NATS_URL: "" }, /NATS_URL is not set/],
    [{ PAWL_STORE: "etcd" }, /PAWL_STORE is "etcd"/],
    [{ PAWL_ACK_WAIT: "soon" }, /PAWL_ACK_WAIT is "soon"/],
    [{ PAWL_AGENTS_DIR: "/no/such" }, /There is no agents folder \/no\/such\. Run this in a project/],
  ])("%j", async (env, says) => {
    const { code, text } = await call(["run", "recorder"], env);
    expect(text).toMatch(says);
    expect(code).toBe(2);
  });

  test("the same id for other work", async () => {
    await call(["submit", "recorder", '{"n":1}', "--id", "taken"]);
    expect(await call(["submit", "recorder", '{"n":2}', "--id", "taken"])).toMatchObject({
      code: 2,
      text: expect.stringContaining("exists with another input"),
    });
  });
});

describe("something is wrong: exit code 1", () => {
  test("an unknown task; in JSON as an object with its code", async () => {
    expect(await call(["status", "nobody"])).toMatchObject({
      code: 1,
      text: expect.stringContaining("No task nobody in namespace"),
    });
    const { code, text } = await call(["status", "nobody", "--json"]);
    expect({ code, error: JSON.parse(text).error }).toMatchObject({
      code: 1,
      error: { code: "task_unknown" },
    });
  });

  test("used wrongly with --json: an object on standard output too", async () => {
    const { code, text } = await call(["status", "--json"]);
    expect(code).toBe(2);
    expect(JSON.parse(text.trim().split("\n").at(-1) as string)).toMatchObject({ error: { code: "usage" } });
  });

  test("no server", async () => {
    expect(await call(["status", "x"], { NATS_URL: "nats://127.0.0.1:1" })).toMatchObject({
      code: 1,
      text: expect.stringContaining("can't be reached"),
    });
  });
});

test("every command has help with an example", async () => {
  for (const command of ["run", "submit", "status"]) {
    const { code, text } = await call([command, "--help"]);
    expect({ command, code }).toEqual({ command, code: 0 });
    expect(text).toContain("Example:");
    expect(text).toContain("--json");
  }
  const help = await call(["--help"]);
  for (const variable of ["NATS_URL", "PAWL_STORE", "Exit codes"]) expect(help.text).toContain(variable);
});

test("an input comes from standard input as well", async () => {
  const child = spawn(process.execPath, [CLI, "submit", "recorder", "-", "--id", "piped", "--json"], {
    env: { PATH: process.env.PATH, PAWL_AGENTS_DIR: AGENTS, ...calm(w).env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
  });
  child.stdin.end('{"n": 1}');
  await new Promise((resolve) => child.on("close", resolve));
  expect(JSON.parse(text)).toMatchObject({ id: "piped", kind: "accepted" });
  await call(["run", "recorder", "--drain"], { TEST_RECORD: await recordFile() });
});

test("what a stranger wrote is shown as text, never as control characters", async () => {
  await call(["submit", "recorder", JSON.stringify({ x: "\u001b[2J\u202e" }), "--id", "nasty"]);
  const { text } = await call(["status", "nasty"]);
  expect(text).not.toContain("\u001b");
  expect(text).not.toContain("\u202e");
  await call(["run", "recorder", "--drain"], { TEST_RECORD: await recordFile() });
});

describe("SIGTERM", () => {
  test.each([
    { name: "a handler that listens", input: { ms: 60_000 }, released: true },
    { name: "a handler that is deaf", input: { ms: 60_000, deaf: true }, released: false },
  ])(
    "$name: handed off within the grace period, and the next runner goes on",
    async ({ input, released }) => {
      const file = await recordFile();
      const id = `stop-${released}`;
      await call(["submit", "recorder", JSON.stringify(input), "--id", id]);
      const runner = pawl(w, ["run", "recorder", "--json"], { TEST_RECORD: file });
      await expect.poll(() => notes(file).length).toBe(1);
      await runner.kill("SIGTERM");
      // Not 1, which is the end of those whose grace period was over.
      expect(await runner.exited, runner.text()).toBe(0);
      await using deps = await observer(w);
      expect((await deps.store.get(id))?.task).toMatchObject({
        state: "dispatched",
        attempts: 0,
        released,
        settled: [],
      });
      // Put it out of the next test's way.
      const queue = { namespace: w.config.settings.namespace, agent: "recorder", lane: 0, generation: 1 };
      await (await next(deps, queue)).ack();
    },
  );

  test("an idle runner ends at once", async () => {
    const runner = pawl(w, ["run", "recorder", "--json"]);
    await runner.says(/run\.started/);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const asked = Date.now();
    await runner.kill("SIGINT");
    expect(await runner.exited).toBe(0);
    // A pull that nobody withdraws waits for five seconds.
    expect(Date.now() - asked).toBeLessThan(4_000);
  });
});

test("a task whose process dies every time becomes a dead letter, and those behind it are done", async () => {
  const file = await recordFile();
  const env = { TEST_RECORD: file };
  await call(["submit", "recorder", '{"outcome":"crash"}', "--id", "crasher"]);
  await call(["submit", "recorder", "{}", "--id", "behind"]);
  expect((await call(["run", "recorder", "--drain"], env)).code).toBe(9);
  expect((await call(["run", "recorder", "--drain"], env)).code).toBe(9);
  expect((await call(["run", "recorder", "--drain"], env)).code).toBe(0);
  await using deps = await observer(w);
  expect((await deps.store.get("crasher"))?.task).toMatchObject({
    state: "failed",
    error: { code: "crash_loop" },
    executions: 2,
    released: false,
    input: { outcome: "crash" },
  });
  expect((await deps.store.get("behind"))?.task.state).toBe("completed");
  expect(notes(file).filter((note) => note.id === "crasher" && note.what === "start")).toHaveLength(2);
});

test("the bin is the command, also under an older Node", async () => {
  const bin = CLI.replace("main.ts", "pawl.mjs");
  const runner = startProcess([bin, "--help"], {});
  expect(await runner.exited).toBe(0);
  expect(runner.text()).toContain("Usage: pawl");
  expect(readFileSync(bin, "utf8")).toMatch(/^#!\/usr\/bin\/env node/);
});
