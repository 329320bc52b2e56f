import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { printable } from "../../infra/cli/output.ts";
import { entryLines } from "../../infra/cli/tasks/entry-lines.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import { calm } from "../support/observer.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

const output = new URL("../../infra/cli/output.ts", import.meta.url).href;
const LONG = 3_000_000;

/** A command that says something and ends, with a reader of its own. */
function says(code: string) {
  const program = `import { endWhenSaid, say, sayJson } from "${output}"; ${code}; await endWhenSaid();`;
  return spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

test("a slow reader gets all of a long answer", async () => {
  const command = says(`sayJson({ long: "x".repeat(${LONG}) })`);
  await sleep(1_000);
  let text = "";
  command.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [code] = await once(command, "close");
  expect(code).toBe(0);
  expect(JSON.parse(text).long).toHaveLength(LONG);
});

test("a reader that has seen enough is waited for by nobody", async () => {
  const command = says(`sayJson({ long: "x".repeat(${LONG}) })`);
  await once(command.stdout, "readable");
  command.stdout.destroy();
  const [code] = await once(command, "exit");
  expect(code).toBe(0);
});

test("what a terminal would obey, or nobody would see, is shown", async () => {
  const hidden = ["\u009b2J", "\u202eabc", "\u2066", "\u200b", "\u00ad", "\u{e0041}", "\u0007", "\n"];
  for (const text of hidden) expect(printable(text)).toMatch(/^(\\u[0-9a-f]{4})+\w*$/);
  expect(printable("Grüße, 世界, ⚠️")).toBe("Grüße, 世界, ⚠️");
  const command = says(`sayJson({ hidden: ${JSON.stringify(hidden)} })`);
  const chunks: Buffer[] = [];
  command.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(command, "close");
  const text = Buffer.concat(chunks).toString();
  // For machines it means the same.
  expect(JSON.parse(text)).toEqual({ hidden });
  expect(text.trimEnd()).toMatch(/^[ -~]+$/);
});

test("so does one of the command itself", async () => {
  await using nats = await testNats();
  const w = calm(world(nats, "nats-kv"));
  await using deps = await wired(w.config);
  const queue = { namespace: w.config.settings.namespace, agent: "recorder", lane: 0, generation: 1 };
  await deps.bus.ensure(queue);
  const input = { long: "x".repeat(400_000) };
  await submit(deps, { agent: "recorder", lanes: 1, id: "long", input });
  const command = spawn(process.execPath, [inject("programs").pawl, "status", "long", "--json"], {
    env: { ...process.env, ...w.env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(command, "exit");
  // It waits for its reader.
  expect(await Promise.race([exited, sleep(3_000, "waits")])).toBe("waits");
  const chunks: Buffer[] = [];
  command.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  expect(await exited).toEqual([0, null]);
  expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ id: "long", input });
});

test("a turn says what it was asked, what it said, and what of it came from the cache", () => {
  const at = { key: "draft/turn 1#1", at: 0, alone: true } as const;
  const reserved = { turns: 1, inputTokens: 9, outputTokens: 9, usd: 1 };
  const intent = { ...at, kind: "intent", of: "turn", reserved, askedHash: "h" } as const;
  expect(entryLines({ ...intent, asked: { text: "[user]\nWrite\tit" } })).toEqual([
    "  intent   draft/turn 1#1",
    "           asked: [user] Write it",
  ]);
  // Cut in the middle of a character, and bounded.
  const [, long = ""] = entryLines({ ...intent, asked: { text: `${"x".repeat(159)}🙂 and more` } });
  expect(long).toBe(`           asked: ${"x".repeat(159)}\ufffd…`);
  const cost = { turns: 1, inputTokens: 1_200, outputTokens: 50, usd: 0.25 };
  const turn = (usage: object) => ({ content: [{ type: "text", text: "Here it is." }], usage });
  const receipt = (usage: object) =>
    entryLines({ kind: "receipt", key: at.key, cost, value: turn(usage) } as Entry);
  expect(receipt({ cache_read_input_tokens: 1_000 })).toEqual([
    "  receipt  draft/turn 1#1  1200 (1000 cached) + 50 tokens, $0.25",
    "           said: Here it is.",
  ]);
  expect(receipt({})[0]).toBe("  receipt  draft/turn 1#1  1200 + 50 tokens, $0.25");
  expect(entryLines({ kind: "step", key: "s#1", at: 0, alone: true, value: 1 } as Entry)).toEqual([
    "  step     s#1",
  ]);
});
