import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { redrive } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import { subjectPrefix } from "../../shared/task/names.ts";
import { CLI, pawl, startProcess } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { tempAgents } from "../support/temp-agents.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const agents = tempAgents();
const { agentModule } = inject("programs");
// Known by its file; what it does in these tests is the stage's own.
writeFileSync(
  join(agents, "seen.ts"),
  `import { defineAgent } from "${agentModule}";
export default defineAgent({ limits: { lanes: 2 }, run: () => "done" });\n`,
);

/** A pipe that says it is a terminal. */
const TERMINAL = "data:text/javascript,process.stdout.isTTY = true; process.stdout.columns = 40";

async function stage() {
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  const queue = queueOf(deps, { agent: "seen", lane: 0 });
  await deps.bus.ensure(queue);
  const env = { PAWL_AGENTS_DIR: agents };
  const start = (...args: string[]) => pawl(w, args, env);
  const gate = Promise.withResolvers<void>();
  const agent = defineAgent({
    limits: { attempts: 1 },
    async run({ input, step, approval, effect }) {
      const { what } = input as { what: string };
      await step("read", () => ({ text: "a\u001b[2Jb" }));
      if (what === "approval") return approval("publish", { summary: "May I?" });
      if (what === "slow") await gate.promise;
      if (what === "fail") throw new Error("broken");
      return effect("post", { run: () => "posted" });
    },
  });
  return {
    deps,
    queue,
    gate,
    start,
    run: async (...args: string[]) => {
      const command = start(...args);
      return { code: await command.exited, text: command.text() };
    },
    submit: (id: string) => submit(deps, { agent: "seen", lanes: 1, id, input: { what: id } }),
    serve: (mode: "drain" | "once" = "drain") =>
      serve(deps, { name: "seen", agent, mode, stop: new AbortController().signal }),
    onTerminal: (...args: string[]) =>
      startProcess(["--import", TERMINAL, CLI, ...args], { ...w.env, ...env }),
    [Symbol.asyncDispose]: async () => {
      gate.resolve();
      await deps[Symbol.asyncDispose]();
    },
  };
}

const parsed = (text: string) => JSON.parse(text) as Record<string, unknown>;
const parsedLines = (text: string) => text.trim().split("\n").map(parsed);

test("dlq show: why a task failed, what it was given, and how far it came", async () => {
  await using s = await stage();
  await s.submit("fail");
  await s.serve();
  const { code, text } = await s.run("dlq", "show", "fail");
  expect(code).toBe(0);
  for (const line of [
    /^task +fail$/m,
    /^agent +seen, lane 0$/m,
    /^reason +attempts_exhausted: Failed 1 times, at last: broken$/m,
    /^ {2}at .*look\.test\.ts/m,
    /^phase +handler$/m,
    /^attempts +1 failures, 1 starts, 1 dispatches$/m,
    /^input +\{"what":"fail"\}$/m,
    /^to do .*docs\/errors\.md#attempts_exhausted/m,
    /^again +pawl dlq redrive fail$/m,
    /^journal +1 entries$/m,
    /^ {2}step +read#1$/m,
  ])
    expect(text).toMatch(line);
  const json = await s.run("dlq", "show", "fail", "--json");
  expect(parsed(json.text)).toMatchObject({
    id: "fail",
    error: { code: "attempts_exhausted", phase: "handler" },
    input: { what: "fail" },
    journal: { count: 1, lost: { turns: 0 } },
  });
  // From scratch it begins a journal of its own: the old one is not its.
  await redrive(s.deps, "fail", { fromScratch: true });
  expect((await s.run("status", "fail")).text).not.toContain("journal");
});

test("dlq show: a message that was no task, as text where it is text, and as base64 where not", async () => {
  await using s = await stage();
  const letters: [Uint8Array, string, string | undefined][] = [
    [
      new TextEncoder().encode("hé\u001b[2J\nthere"),
      "as text:\n  hé\\u001b[2J\n  there\n",
      "hé\u001b[2J\nthere",
    ],
    [new Uint8Array([0x7b, 0xff, 0xfe]), "as base64:\n  e//+\n", undefined],
  ];
  const prefix = subjectPrefix(s.queue);
  for (const [i, [data]] of letters.entries()) s.deps.nc.publish(`${prefix}odd-${i}`, data);
  await s.deps.nc.flush();
  await s.serve();
  for (const [i, [data, shown, text]] of letters.entries()) {
    const letter = await s.run("dlq", "show", `odd-${i}`);
    expect(letter.code).toBe(0);
    expect(letter.text).toMatch(/^reason +envelope_invalid: /m);
    expect(letter.text).toMatch(/^phase +envelope$/m);
    expect(letter.text).toContain(`message     ${data.length} bytes on ${prefix}odd-${i}, ${shown}`);
    expect(letter.text).not.toContain("again");
    const json = parsed((await s.run("dlq", "show", `odd-${i}`, "--json")).text);
    expect(json.raw).toEqual({
      base64: Buffer.from(data).toString("base64"),
      bytes: data.length,
      truncated: false,
      subject: `${prefix}odd-${i}`,
      ...(text !== undefined && { text }),
    });
  }
});

test("events: what there is, then the end", async () => {
  await using s = await stage();
  await s.submit("approval");
  await s.serve();
  const waiting = await s.run("events", "approval");
  expect(waiting.code).toBe(0);
  expect(waiting.text.split("\n").map((line) => line.replace(/\S+Z /, "").split(/ +/).slice(0, 3))).toEqual([
    ["transition", "submit", "dispatched"],
    ["transition", "claim", "running"],
    ["journal", "1", "step"],
    ["journal", "2", "intent"],
    ["transition", "wait", "waiting"],
    [""],
  ]);
  expect(waiting.text).toContain('read#1  {"text":"a\\u001b[2Jb"}');
  await s.submit("effect");
  await s.serve();
  const events = parsedLines((await s.run("events", "effect", "--json")).text);
  expect(events.map(({ kind }) => kind)).toEqual([
    ...["transition", "transition"],
    ...["journal", "journal", "journal", "transition", "end"],
  ]);
  expect(events[0]).toEqual({
    kind: "transition",
    id: expect.stringMatching(/^[\w-]+\.0\.0$/),
    data: expect.objectContaining({ event: "submit", state: "dispatched" }),
  });
  expect(events[2]?.data).toMatchObject({
    n: 1,
    kind: "step",
    key: "read#1",
    value: { text: "a\u001b[2Jb" },
  });
  expect(events.at(-1)?.data).toEqual({ state: "completed" });
});

test("events --follow goes on until the task is over", async () => {
  await using s = await stage();
  await s.submit("slow");
  const follower = s.start("events", "slow", "--follow");
  const machine = s.start("events", "slow", "--follow", "--json");
  await follower.says(/^transition .* submit /);
  const running = s.serve();
  await follower.says(/^journal +1 +step +read#1/);
  await machine.says(/"kind":"journal"/);
  expect(follower.text()).not.toContain("complete");
  s.gate.resolve();
  expect(await follower.exited).toBe(0);
  expect(follower.text()).toMatch(/complete +completed .*\n(journal .*\n)*end +completed\n$/);
  expect(await machine.exited).toBe(0);
  expect(parsedLines(machine.text()).at(-1)).toMatchObject({ kind: "end", data: { state: "completed" } });
  await running;
});

test("events --follow ends with Ctrl-C", async () => {
  await using s = await stage();
  await s.submit("slow");
  const follower = s.start("events", "slow", "--follow");
  await follower.says(/^transition/);
  await follower.kill("SIGINT");
  expect(await follower.exited).toBe(0);
});

test("agents: what is in their queues, all lanes together", async () => {
  await using s = await stage();
  const head = "agent  lanes  pending  in flight  redelivered  oldest";
  expect(await s.run("agents")).toEqual({
    code: 0,
    text: `${head}\nseen       2        0          0            0  -\n`,
  });
  await s.submit("a");
  await s.submit("b");
  expect((await s.run("agents")).text).toMatch(/^seen {7}2 {8}2 {10}0 {12}0 {2}[\d.]+ m?s$/m);
  const json = parsed((await s.run("agents", "--json")).text);
  const oldestAge = expect.any(Number);
  expect(json).toEqual({
    agents: [{ name: "seen", lanes: 2, pending: 2, inFlight: 0, redelivered: 0, oldestAge, left: [] }],
  });
});

test("top: queues, tasks and counts, in one picture where nobody watches", async () => {
  await using s = await stage();
  await s.submit("fail");
  await s.submit("approval");
  await s.serve();
  await s.submit("slow");
  const running = s.serve("once");
  const follower = s.start("events", "slow", "--follow");
  await follower.says(/^journal/);
  const seen = await s.deps.store.getHead("slow");
  if (seen)
    await s.deps.store.putHead({ ...seen.head, spent: { ...seen.head.spent, usd: 0.25 } }, seen.revision);
  await s.deps.meter.flush();
  const { code, text } = await s.run("top");
  expect([code, text.includes("\u001b")]).toEqual([0, false]);
  for (const part of [
    /^seen {7}2 {8}0 {10}1 {12}0 {2}[\d.]+ m?s$/m,
    /^running: 1\n {2}slow {2}seen {2}[\d.]+ m?s {2}\$0.25 {2}\S+$/m,
    /^waiting: 1\n {2}approval {2}seen {2}[\d.]+ m?s {2}- {2}approval:publish: May I\?$/m,
    /^in doubt: 0$/m,
    /^failed: 1\n {2}fail {2}seen {2}[\d.]+ m?s {2}- {2}attempts_exhausted: .*broken$/m,
    /^counted: (.*, )?deliveries 2(,|$)/m,
  ])
    expect(text).toMatch(part);
  const json = parsed((await s.run("top", "--once", "--json")).text);
  expect(json).toMatchObject({
    agents: [{ name: "seen", inFlight: 1 }],
    tasks: {
      running: { newest: [{ id: "slow", agent: "seen", for: expect.any(Number), usd: 0.25 }], more: false },
      waiting: { newest: [{ id: "approval" }] },
      in_doubt: { newest: [] },
      failed: { newest: [{ id: "fail" }] },
    },
    counts: { deliveries: 2 },
  });
  s.gate.resolve();
  await running;
});

test("top on a terminal: drawn anew, within its width, until Ctrl-C", async () => {
  await using s = await stage();
  await s.submit("fail");
  await s.serve();
  const top = s.onTerminal("top", "--every", "100ms");
  await top.says(/failed: 1/);
  const pictures = () => top.text().split("\u001b[2J\u001b[H").length - 1;
  const before = pictures();
  await expect.poll(pictures).toBeGreaterThan(before + 1);
  await top.kill("SIGINT");
  expect(await top.exited).toBe(0);
  const lines = top.text().split("\n");
  expect(lines.some((line) => line.startsWith("  fail  seen") && line.length === 40)).toBe(true);
  const once = s.onTerminal("top", "--once");
  expect(await once.exited).toBe(0);
  expect(once.text()).not.toContain("\u001b");
});

test("used wrongly: 2; no such task, or one that is no dead letter: 1", async () => {
  await using s = await stage();
  await s.submit("a");
  const calls: [string[], number, RegExp][] = [
    [["dlq", "show"], 2, /missing required argument 'id'/],
    [["dlq", "show", "a/b"], 2, /Task id "a\/b" can't be used/],
    [["dlq", "show", "nobody"], 1, /No task nobody in namespace/],
    [["dlq", "show", "a"], 1, /Task a is dispatched: only failed tasks are dead letters/],
    [["events"], 2, /missing required argument 'id'/],
    [["events", "a/b"], 2, /Task id "a\/b" can't be used/],
    [["events", "nobody"], 1, /no task nobody/],
    [["events", "nobody", "--follow", "--json"], 1, /"code":"task_unknown"/],
    [["agents", "seen"], 2, /too many arguments/],
    [["top", "--every", "soon"], 2, /--every soon is not a duration; write it like 2s/],
    [["top", "--every", "0s", "--json"], 2, /"code":"usage"/],
  ];
  for (const [args, code, says] of calls)
    expect({ args, ...(await s.run(...args)) }).toEqual({ args, code, text: expect.stringMatching(says) });
  for (const command of [["dlq", "show"], ["events"], ["agents"], ["top"]]) {
    const { code, text } = await s.run(...command, "--help");
    expect({ command, code }).toEqual({ command, code: 0 });
    for (const part of [/^Examples?:$/m, /--json/]) expect(text).toMatch(part);
  }
});
