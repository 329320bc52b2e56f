import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { update } from "../../shared/retry/guarded-write.ts";
import { DOCUMENT_LIMIT, makeSettings } from "../../shared/settings/settings.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf, bench } from "../support/bench.ts";
import { counting } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("lines cost no write and no read: the path of a task that logs is that of one that does not", async () => {
  const agent = agentOf(({ log }) => {
    for (let i = 0; i < 300; i++) log(`line ${i}`);
    return "done";
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  const { store, asked } = counting(b.deps.store);
  Object.assign(b.deps, { store });
  await b.drain();
  expect(asked.filter((one) => /^(replace|create|get|getHead|putHead|putPart)$/.test(one))).toEqual([
    "replace",
    "replace",
  ]);
  const task = await b.task("t");
  expect(task.state).toBe("completed");
  expect(task.logs).toMatchObject({ count: 300, lines: { length: 100, 99: { text: "line 299", fence: 1 } } });
});

test("a document that would be too large goes without what is only for people to read", async () => {
  const written: Task[] = [];
  const replace = async (task: Task) => {
    written.push(task);
    return { kind: "written", revision: "2" };
  };
  const bus = { announce: () => {} };
  const clock = { now: () => 0 };
  const deps = { store: { replace }, bus, clock, runner: "me", settings: makeSettings() } as unknown as Deps;
  const envelope = { id: "t", agent: "a", lane: 0, input: {}, inputHash: "", at: 0, stamp: "s", by: "me" };
  const task = submitted(envelope, "Q");
  const grown = (room: number) => async () => {
    const logs = {
      count: 100,
      lines: Array.from({ length: 16 }, () => ({ at: 0, fence: 1, text: "x".repeat(900) })),
    };
    const input = { text: "y".repeat(DOCUMENT_LIMIT - room) };
    await update(
      deps,
      { task, revision: "1" },
      (one) => ({ ...one, logs, input }),
      () => {},
    );
    return written.at(-1)?.logs?.lines.length;
  };
  expect(await grown(40_000)()).toBe(16);
  expect(await grown(8_000)()).toBe(0);
  expect(written.at(-1)?.logs?.count).toBe(100);
  await expect(grown(100)()).rejects.toMatchObject({ code: "document_too_large" });
});

test("PAWL_KEEP_PROMPTS=false keeps what models are asked out of every journal", async () => {
  const agent = agentOf(async ({ llm }) => {
    await llm("ask", { model: "claude-sonnet-5-5", prompt: "a secret" });
  });
  await using b = await bench(nats, "nats-kv", agent, { keepPrompts: false });
  Object.assign(b.deps, { model: scripted(["ok"]) });
  await b.submit({}, { id: "t" });
  await b.drain();
  const journal = await readJournal(b.deps, "t", () => {});
  expect(journal?.entries[0]).toMatchObject({ kind: "intent", asked: { bytes: 15 } });
  expect(JSON.stringify(journal)).not.toContain("a secret");
});
