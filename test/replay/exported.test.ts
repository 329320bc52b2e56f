import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineAgent } from "../../shared/agent.ts";
import type { Stored } from "../../shared/ports/store.ts";
import {
  type ExportedJournal,
  exportJournal,
  readExported,
  writeExported,
} from "../../shared/replay/exported.ts";
import { withoutInput, withoutSecrets } from "../../shared/replay/redacted.ts";
import { replay } from "../../shared/replay/replay.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { replays } from "../../shared/testing.ts";
import { redactor } from "../../shared/values/redact.ts";
import { inMemory } from "../support/in-memory.ts";

const MAIL = "ann@customer.example";

const letters = (greeting: string) =>
  defineAgent({
    run: async ({ input, step, llm }) => {
      const { mail = MAIL, count = 2 } = input as { mail?: string; count?: number };
      const book = await step("look up", () => ({
        mail,
        pages: "p".repeat(count * 10_000),
        key: "sk-secret-4711",
      }));
      const { text } = await llm("write", {
        model: "claude-haiku-4-5",
        prompt: `${greeting} ${book.mail}`,
        maxTokens: 9,
      });
      return { text, to: book.mail, count };
    },
  });

async function exported(
  input: object = { mail: MAIL, count: 3, deep: { note: "call me at noon", age: 41 } },
) {
  const agent = letters("Dear");
  const memory = inMemory({ letters: agent }, scripted([`Dear ${MAIL}`]));
  await memory.submit("letters", "t");
  const seen = (await memory.deps.store.get("t")) as Stored;
  await memory.deps.store.replace({ ...seen.task, input: input as never }, seen.revision);
  await memory.run("t");
  const task = await memory.task("t");
  return { agent, task, journal: await exportJournal(memory.deps, task), memory };
}

test("an export has large values whole, and nothing that gives a right to anything", async () => {
  const { agent, journal, memory, task } = await exported();
  const text = writeExported(journal);
  expect(text).toContain("p".repeat(30_000));
  expect(text).not.toMatch(/"(token|fence|seal|owner|stamp|runner|parts|meta)"/);
  const read = readExported(text, "t.json");
  expect(await replay(agent, read)).toMatchObject({ ends: "returns", differences: [] });
  // A journal of a task before it under the same id, or of before it was redriven from scratch, is not its own.
  const again = await exportJournal(memory.deps, { ...task, epoch: 1 });
  expect(again.entries).toEqual([]);
});

test("redacted: the input's texts are nowhere, and it still replays", async () => {
  const { agent, journal } = await exported();
  const all = withoutInput(journal);
  expect(JSON.stringify(all)).not.toMatch(/ann@customer|call me|asked|askedHash/);
  expect(all).toMatchObject({
    redacted: ["input"],
    task: { input: { mail: "[redacted]", count: 3, deep: { age: 41 } } },
  });
  expect(await replay(agent, all)).toMatchObject({ ends: "returns", differences: [] });
  const some = withoutInput(journal, ["deep"]);
  expect(some).toMatchObject({
    redacted: ["input.deep"],
    task: { input: { mail: MAIL, deep: { note: "[redacted]", age: 0 } } },
  });
  expect(() => withoutInput(journal, ["deep.nose"])).toThrow('The task\'s input has no "deep.nose"');
  expect(JSON.stringify(journal)).toContain("call me at noon");
  const safe = withoutSecrets(journal, redactor({ KEY: "sk-secret-4711" }));
  expect(JSON.stringify(safe)).not.toContain("sk-secret-4711");
  expect(await replay(agent, safe)).toMatchObject({ ends: "returns", differences: [] });
});

test("a file that is none is refused, and says why", () => {
  const refused = (value: unknown, why: RegExp) =>
    expect(() => readExported(typeof value === "string" ? value : JSON.stringify(value), "x.json")).toThrow(
      why,
    );
  const task = {
    id: "t",
    agent: "a",
    state: "running",
    input: {},
    attempts: 0,
    epoch: 0,
    createdAt: 1,
    signals: [],
  };
  const good = { pawl: "journal", v: 1, at: 1, version: 1, task, entries: [] };
  expect(readExported(JSON.stringify(good), "x.json")).toEqual(good);
  refused("{", /x\.json is not JSON/);
  refused([], /x\.json: it is no journal of Pawl's/);
  refused({ ...good, v: 2 }, /its form is 2; this version of Pawl reads 1/);
  refused({ ...good, entries: 1 }, /it needs a task, entries/);
  refused({ ...good, task: { ...task, signals: 1 } }, /its task is not whole/);
  refused({ ...good, task: { ...task, agent: "../../etc" } }, /Agent name/);
  refused({ ...good, entries: [{ kind: "magic", key: "a#1" }] }, /entry 1 is none/);
  refused({ ...good, entries: [{ kind: "receipt", key: "a#1" }] }, /without its intent/);
});

test("replays: a test by real journals passes, and fails with the first difference of each", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-journals-"));
  try {
    await expect(replays(folder)).rejects.toThrow(/has no journals\. pawl journal export/);
    const { agent, journal } = await exported();
    const put = (name: string, one: ExportedJournal) => writeFile(join(folder, name), writeExported(one));
    await put("t.json", journal);
    await put("u.json", { ...journal, task: { ...journal.task, id: "u" } });
    await replays(folder, { agents: { letters: agent } });
    const changed = { letters: letters("Hello") };
    const failure = await replays(folder, { agents: changed }).catch((error: Error) => error.message);
    expect(failure).toMatch(
      /t\.json: t\n {2}DIFFERENT \(prompt\): Turn write\/turn 1#1: .*Dear.*Hello.*\n.*u\.json: u\n/,
    );
    await replays(folder, { agents: changed, allow: ["prompt"] });
    await expect(replays(folder, { agents: {} })).rejects.toThrow(
      /DIFFERENT \(agent\): The test gives no agent "letters"/,
    );
    // As an author has it: by the folder of agents.
    await expect(replays(folder, { agents: new URL("../../agents/", import.meta.url) })).rejects.toThrow(
      /letters\.ts/,
    );
    const echo = {
      ...journal,
      entries: [],
      task: { ...journal.task, agent: "echo", result: { never: "this" } },
    };
    await rm(join(folder, "u.json"));
    await put("t.json", echo as ExportedJournal);
    await expect(replays(folder)).rejects.toThrow(/DIFFERENT \((input|result)\)/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
