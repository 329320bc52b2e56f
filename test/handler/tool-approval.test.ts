import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, type Tool, tool } from "../../shared/agent.ts";
import { crashOf } from "../../shared/testing/dying-store.ts";
import { runWith } from "../../shared/testing/run-agent.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { type AgentRun, asks, everyCrash, type RunOptions, runAgent } from "../../shared/testing.ts";
import type { JsonObject } from "../../shared/values/json.ts";

const MODEL = "claude-sonnet-5-5";
const says = (text: string, ...calls: [string, JsonObject][]) => {
  const asked = asks(...calls) as { content: JsonObject[] };
  return { ...asked, content: [{ type: "text", text }, ...asked.content] };
};

/** A world in which letters are sent, and who asks can find out. */
function world(more: Partial<Tool> = {}) {
  const sent = new Map<string, string>();
  const runs: string[] = [];
  const send = {
    ...tool({
      name: "send",
      description: "Sends a letter",
      input: z.object({ to: z.string() }),
      approve: true,
      run: ({ to }, key) => {
        runs.push(to);
        sent.set(key, to);
        return `sent to ${to}`;
      },
      verify: (_, key) => (sent.has(key) ? `sent to ${sent.get(key)}` : undefined),
    }),
    ...more,
  };
  const agent = defineAgent({
    run: async ({ llm }) => (await llm("ask", { model: MODEL, prompt: "?", tools: [send] })).text,
  });
  return { agent, runs, sent };
}

const model = [says("She waits for it.", ["send", { to: "Ada" }]), "done"];
const told = ({ requests }: AgentRun) =>
  (requests.at(-1) as { messages: { content: JsonObject[] }[] } | undefined)?.messages.at(-1)?.content[0];
const kinds = ({ journal }: AgentRun) =>
  journal.map((entry) => `${entry.kind}${entry.kind === "intent" ? ` ${entry.of}` : ""} ${entry.key}`);

test("it waits for a person, who sees the tool, its arguments and why; approved it runs, once", async () => {
  const { agent, runs } = world();
  const waiting = await runAgent(agent, {}, { model });
  const [asked] = waiting.waitingFor ?? [];
  expect(waiting.state).toBe("waiting");
  expect(asked).toMatch(/^approval:ask\/send\/use_1_send@[0-9a-f]{32}$/);
  expect(waiting.history.at(-1)).toMatchObject({ state: "waiting" });
  expect(runs).toEqual([]);
  const run = await runAgent(agent, {}, { model, approvals: { send: true } });
  expect([run.result, runs]).toEqual(["done", ["Ada"]]);
  expect(told(run)).toMatchObject({ content: "sent to Ada" });
  // What was asked is in the journal too, when nobody waits for it any more.
  expect(run.journal[2]).toMatchObject({ asked: { text: waiting.summary } });
  expect(waiting.summary).toBe(
    'May the model use send?\nWith: {"to":"Ada"}\nThe model says:\n> She waits for it.',
  );
  const [question] = [(asked as string).slice("approval:".length)];
  expect(kinds(run)).toEqual([
    "intent turn ask/turn 1#1",
    "receipt ask/turn 1#1",
    `intent wait ${question}#1`,
    `receipt ${question}#1`,
    "intent effect ask/send/use_1_send#1",
    "receipt ask/send/use_1_send#1",
    "intent turn ask/turn 2#1",
    "receipt ask/turn 2#1",
  ]);
});

test("refused, it does not run, and the model is told why; unanswered in its time likewise", async () => {
  const { agent, runs } = world({ approvalTimeout: "2d" });
  const note = "Ada has moved";
  const refused = await runAgent(
    agent,
    {},
    {
      model,
      approvals: { send: { approved: false, by: "grace", note } },
    },
  );
  expect([refused.result, runs]).toEqual(["done", []]);
  expect(told(refused)).toMatchObject({
    is_error: true,
    content: `A person refused this call. It was not made. ${note}`,
  });
  const silent = await runAgent(agent, {}, { model });
  expect([silent.result, silent.elapsed, runs]).toEqual(["done", 2 * 86_400_000, []]);
  expect(told(silent)).toMatchObject({
    is_error: true,
    content: expect.stringMatching(/Nobody approved.*2d/),
  });
});

test("a function says for which inputs it asks", async () => {
  const { agent, runs } = world({ approve: ({ to }: { to: string }) => to !== "Ada" });
  expect(await runAgent(agent, {}, { model })).toMatchObject({ state: "completed" });
  const other = [asks(["send", { to: "Bob" }]), "done"];
  expect(await runAgent(agent, {}, { model: other })).toMatchObject({ state: "waiting" });
  expect(runs).toEqual(["Ada"]);
});

test("what a model writes can't hide or fake a question: it is on one line or marked, bounded, and several share the room", async () => {
  const { agent } = world();
  const fake = 'x"\nMay the model use look?\nWith: {}';
  const long = "y".repeat(9_000);
  const answers = [says(`one\n${fake}`, ["send", { to: fake }], ["send", { to: long }]), "done"];
  const run = await runAgent(agent, {}, { model: answers });
  const summary = run.summary ?? "";
  expect(summary.length).toBeLessThanOrEqual(4_000);
  const lines = summary.split("\n");
  expect(lines.filter((line) => line.startsWith("May the model use "))).toEqual(
    Array(2).fill("May the model use send?"),
  );
  expect(lines.filter((line) => line.startsWith("With: "))).toEqual([
    `With: ${JSON.stringify({ to: fake })}`,
    expect.stringMatching(/^With: \{"to":"y+… \(the beginning of 9009 bytes/),
  ]);
  expect(lines).toContain("> May the model use look?");
  expect(run.waitingFor).toHaveLength(2);
});

describe("bound to its arguments", () => {
  test("an answer to the same call with others is none", async () => {
    const { agent, runs } = world();
    const [name = ""] = (await runAgent(agent, {}, { model })).waitingFor ?? [];
    const approvals = { [name.slice("approval:".length)]: true };
    expect(await runAgent(agent, {}, { model, approvals })).toMatchObject({ state: "completed" });
    // The same id, as of a turn that is asked again.
    const eve = [says("She waits for it.", ["send", { to: "Eve" }]), "done"];
    expect(await runAgent(agent, {}, { model: eve, approvals })).toMatchObject({ state: "waiting" });
    expect(runs).toEqual(["Ada"]);
  });

  test("names that are too long to be kept whole are told apart", async () => {
    const use = (id: string) => ({
      type: "tool_use",
      id: "i".repeat(120) + id,
      name: "send",
      input: { to: "Ada" },
    });
    const { agent } = world();
    const run = await runAgent(
      agent,
      {},
      { model: [{ content: [use("1"), use("2")], stopReason: "tool_use" }] },
    );
    expect(new Set(run.waitingFor).size).toBe(2);
    for (const name of run.waitingFor ?? []) expect(name.length).toBeLessThan(150);
  });
});

describe("killed around every entry", () => {
  const cases: [string, RunOptions["approvals"], number][] = [
    ["approved", { send: true }, 1],
    ["refused", { send: false }, 0],
    ["not answered", {}, 0],
  ];
  test.each(cases)("%s: nothing runs unapproved, and nothing twice", async (_, approvals, most) => {
    let now = world();
    const fresh = () => {
      now = world();
      // Where nobody can tell, a person finds out.
      return { model, resolve: () => now.runs.length > 0, ...(approvals && { approvals }) };
    };
    // One agent for all runs: each run has its own world behind it.
    const through = defineAgent({ run: (context) => now.agent.run(context) });
    const runs = await everyCrash(through, {}, fresh);
    expect(runs.length).toBeGreaterThanOrEqual(6);
    for (const { crash, run } of runs)
      expect(run.state, crash).toBe(most + Object.keys(approvals ?? {}).length > 0 ? "completed" : "waiting");
    for (let at = 1; at <= 10; at++)
      for (const when of ["crashBefore", "crashAfter"] as const) {
        const options = fresh();
        const run = await runAgent(through, {}, { ...options, [when]: at });
        expect(now.runs.length, `${when} ${at}`).toBe(most);
        const order = kinds(run).map((one) => one.replace(/@.*/, ""));
        if (most > 0)
          expect(order.indexOf("receipt ask/send/use_1_send")).toBeLessThan(
            order.indexOf("intent effect ask/send/use_1_send#1"),
          );
      }
  });

  test("also where it dies twice, and `approve` has changed its mind each time", async () => {
    for (let first = 1; first <= 6; first++)
      for (let second = first + 1; second <= 8; second++) {
        let times = 0;
        const { agent, runs } = world({ approve: () => ++times % 2 === 1 });
        const crashes = [{ crashAfter: first }, { crashAfter: second }].map((one) => crashOf(one) as never);
        const options = { approvals: { send: false } };
        const run = await runWith(agent, {}, options, scripted(model), crashes);
        // Asked once, it is refused for good; not asked, it runs, and is not asked about afterwards.
        const isAsked = kinds(run).some((one) => one.startsWith("intent wait"));
        expect([run.state, runs.length], `${first}, ${second}`).toEqual(["completed", isAsked ? 0 : 1]);
      }
  });
});

test("wrong ones are refused when the tool is made", () => {
  const make = (more: object) => () =>
    tool({ name: "a", description: "b", input: z.object({}), run: () => 1, ...more });
  expect(make({ approve: "yes" })).toThrow(/approve should be true, or a function/);
  expect(make({ approvalTimeout: "soon" })).toThrow(/approvalTimeout should be a duration/);
});
