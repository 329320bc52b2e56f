import { expect, test } from "vitest";
import { defineAgent } from "../../shared/agent.ts";
import { emptyHead } from "../../shared/journal/entries.ts";
import { logbook } from "../../shared/journal/logbook.ts";
import { joined, type Logs } from "../../shared/journal/logs.ts";
import { runAgent } from "../../shared/testing/run-agent.ts";

const clock = { now: () => 5 };
const head = emptyHead({ id: "t", fence: 2, epoch: 0, createdAt: 0 }, 1, "s");
const texts = (logs: Logs | undefined) => logs?.lines.map(({ text }) => text);
const line = (text: string) => ({ at: 1, fence: 1, text });

test("the newest 100 lines and 16 KiB are kept, and how many there were", () => {
  const book = logbook({ id: "t", fence: 1 }, undefined, clock);
  for (let i = 1; i <= 250; i++) book.note(`line ${i}`, "info");
  expect(book.logs().logs).toMatchObject({ count: 250, lines: { length: 100, 0: { text: "line 151" } } });
  for (let i = 0; i < 40; i++) book.note("é".repeat(5_000), "error");
  const { logs } = book.logs();
  expect(JSON.stringify(logs).length).toBeLessThan(16 * 1024);
  expect(new TextEncoder().encode(JSON.stringify(logs)).length).toBeLessThan(18 * 1024);
  expect(logs?.lines.at(-1)).toMatchObject({
    level: "error",
    text: expect.stringMatching(/… \(5000 characters\)$/),
  });
});

test("a head carries only what its document lacks, and less of it", () => {
  const stored = { count: 3, lines: [line("a"), line("b"), line("c")] };
  const book = logbook({ id: "t", fence: 2, logs: stored }, undefined, clock);
  expect(book.onHead(head).logs).toBeUndefined();
  book.note("d", "warn");
  expect(book.onHead(head).logs).toEqual({
    count: 4,
    lines: [{ at: 5, fence: 2, level: "warn", text: "d" }],
  });
  for (let i = 0; i < 500; i++) book.note("x".repeat(500), "info");
  expect(JSON.stringify(book.onHead(head)).length).toBeLessThan(5_000);
});

test("what a holder that died had brought as far as the journal is not lost, nor said twice", () => {
  const stored = { count: 2, lines: [line("a"), line("b")] };
  const died = { count: 4, lines: [line("c"), line("d")] };
  const book = logbook({ id: "t", fence: 2, logs: stored }, died, clock);
  book.note("e", "info");
  expect(texts(book.logs().logs)).toEqual(["a", "b", "c", "d", "e"]);
  expect(texts(joined(stored, died))).toEqual(["a", "b", "c", "d"]);
  expect(joined(book.logs().logs, died)).toEqual(book.logs().logs);
  expect(texts(book.onHead(head).logs)).toEqual(["c", "d", "e"]);
});

test("lines come with the writes that are made anyway, from every start of the handler", async () => {
  const agent = defineAgent({
    run: async ({ log, step, attempt }) => {
      log(`try ${attempt}`);
      await step("a", () => 1);
      log("after a", "warn");
      if (attempt === 1) throw new Error("once more");
      return 1;
    },
  });
  const { logs, history } = await runAgent(agent, {});
  expect(logs?.lines.map(({ fence, level, text }) => [fence, level, text])).toEqual([
    [1, undefined, "try 1"],
    [1, "warn", "after a"],
    [2, undefined, "try 2"],
    [2, "warn", "after a"],
  ]);
  const failed = history.find(({ event }) => event === "retry");
  expect(failed?.error).toEqual({
    code: "handler_failed",
    message: "once more",
    where: expect.stringMatching(/^at .*test\/journal\/logs\.test\.ts:\d+:\d+\)?$/),
  });
});

test("a process that dies after an entry has brought the lines before it along", async () => {
  const agent = defineAgent({
    run: async ({ log, step }) => {
      log("before");
      await step("a", () => 1);
      log("after");
      await step("b", () => 2);
      return 1;
    },
  });
  const { logs } = await runAgent(agent, {}, { crashAfter: "step:a" });
  expect(logs?.lines.map(({ fence, text }) => `${fence} ${text}`)).toEqual([
    "1 before",
    "2 before",
    "2 after",
  ]);
});
