import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf, bench } from "../support/bench.ts";
import { MODEL } from "../support/http/dashboard.ts";
import { pawl } from "../support/servers/runners.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("logs: what a task's handlers logged, and status says why each attempt failed and where", async () => {
  const agent = agentOf(
    ({ log, attempt }) => {
      log("looks\u001b[2J around");
      log("is stuck", "warn");
      throw new Error(`try ${attempt} broke`);
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await b.drain();
  const run = async (...args: string[]) => {
    const command = pawl(b.world, args);
    return { code: await command.exited, text: command.text() };
  };
  const [text, json, none, wrong, help, status] = await Promise.all([
    run("logs", "t"),
    run("logs", "t", "--json"),
    run("logs", "nobody"),
    run("logs", "no/id"),
    run("logs", "--help"),
    run("status", "t"),
  ]);
  expect(text.code).toBe(0);
  expect(text.text).toMatch(
    /^\S+Z {2}fence 1 {2}looks\\u001b\[2J around\n\S+Z {2}fence 1 {2}WARN is stuck\n$/,
  );
  const lines = json.text.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: "info", fence: 1 },
    { level: "warn" },
  ]);
  expect(none.code).toBe(1);
  expect(wrong.code).toBe(2);
  expect(help.text).toContain("Example:");
  expect(status.text).toMatch(
    /^error +attempts_exhausted \(handler\): Failed 1 times, at last: try 1 broke\n {2}at .*logs\.test\.ts:\d+:\d+/m,
  );
  expect(status.text).toMatch(
    / fail +failed .* attempts_exhausted Failed 1 times, at last: try 1 broke at .*logs\.test\.ts/,
  );
});

test("logs and events: what has several lines is shown as lines, none of which passes for one of Pawl's", async () => {
  const agent = agentOf(
    async ({ log, llm, effect }) => {
      log("found two:\r\n- one\n- two\n", "warn");
      await llm("ask", {
        model: MODEL,
        system: "Be brief.",
        prompt: "Dear model,\nend         completed\u001b[2J",
      });
      await effect("send", {
        run: () => {
          throw new Error("refused:\n550 no such user");
        },
      });
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", agent);
  Object.assign(b.deps, { model: scripted(["Hello"]) });
  await b.submit({}, { id: "t" });
  await b.drain();
  const run = async (...args: string[]) => {
    const command = pawl(b.world, args);
    expect(await command.exited).toBe(0);
    return command.text();
  };
  const [logs, events] = await Promise.all([run("logs", "t"), run("events", "t")]);
  const indent = " ".repeat(12);
  expect(logs).toMatch(new RegExp(`^\\S+Z  fence 1  WARN found two:\n${indent}- one\n${indent}- two\n$`));
  const lines = events.split("\n");
  const from = lines.findIndex((line) => line.startsWith("journal        1  intent   ask/turn 1#1"));
  expect(lines.slice(from, from + 6)).toEqual([
    expect.stringMatching(/ {2}asked \[system\]$/),
    `${indent}Be brief.`,
    "",
    `${indent}[user]`,
    `${indent}Dear model,`,
    `${indent}end         completed\\u001b[2J`,
  ]);
  expect(lines.filter((line) => line.startsWith("end "))).toEqual(["end         failed"]);
  expect(events).toMatch(/unsure +send#1 {2}.*refused:\n {12}550 no such user\n/);
  expect(events + logs).not.toContain("\\u000a");
});
