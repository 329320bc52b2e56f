import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { TARGETS } from "../../infra/build/targets.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import { openJournal } from "../../shared/journal/journal.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Running, Task } from "../../shared/task/document.ts";
import type { Envelope } from "../../shared/task/envelope.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { agentOf } from "../support/bench.ts";
import { ALL } from "../support/http/api.ts";
import { HOSTILE } from "../support/http/dashboard.ts";
import { counting, pagesStage } from "../support/http/pages.ts";
import { bundle, deploy, varsOf } from "../support/servers/platforms.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { clearOfMidnight } from "../support/time/midnight.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** What a browser would take for markup: tags with the names of their attributes. */
const markup = (text: string) => (text.replaceAll(/="[^"]*"/g, "=").match(/<[^>]+>/g) ?? []).join("\n");

test("what models and strangers wrote is text, on every page, and cut where it is long", async () => {
  await using s = await pagesStage(nats);
  const agent = agentOf(
    async ({ step, approval }) => {
      await step("<script>window.pwned=7</script>", () => HOSTILE);
      await step("long", () => "y".repeat(6_000));
      await approval("<img src=x onerror=pwned>", { summary: HOSTILE });
      throw new Error(HOSTILE);
    },
    { attempts: 1 },
  );
  const boss = await s.visitor("boss");
  const labels = { "javascript:pwned=1": "javascript:pwned=1", '"><script>': HOSTILE.slice(0, 100) };
  await s.submit(
    { [HOSTILE]: HOSTILE, long: "x".repeat(30_000) },
    { id: "t", meta: { owner: "ann", labels } },
  );
  const comes = (state: Task["state"]) =>
    until(`t is ${state}`, async () => {
      await s.drain(agent);
      return (await s.task("t")).state === state;
    });
  const looked = async (...paths: string[]) => {
    for (const path of paths) {
      const { text, status } = await boss.get(path);
      expect(status).toBe(200);
      const tags = markup(text);
      expect(tags, path).not.toMatch(
        /\son\w+|<svg(?! class= aria-hidden= focusable=>)|<style|javascript:|<b>/,
      );
      expect(tags.match(/<script/g), path).toHaveLength(1);
      expect(text, path).not.toContain('href="javascript:');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of these may come through
      expect(text, path).not.toMatch(/[\u0000-\u0008\u001b\u202e\u2066\u200f]/);
    }
  };
  await comes("waiting");
  await looked("/ui", "/ui/tasks", "/ui/tasks/t");
  const task = (await boss.get("/ui/tasks/t")).text;
  expect(task).toContain("&lt;script&gt;window.pwned=1&lt;/script&gt;");
  expect(task).toContain("\\u202eevil");
  expect(task).toContain("Cut: 20,000 of");
  expect(task).toContain("Cut: 4,000 of 6,000 characters");
  expect(task).toContain("javascript:pwned=1: javascript:pwned=1");
  const name = "<img src=x onerror=pwned>";
  const question = await boss.field("/ui/tasks/t", "question");
  await boss.post("/ui/tasks/t/answer", { question, name, approved: "yes", note: HOSTILE });
  await comes("failed");
  await looked("/ui", "/ui/tasks", "/ui/dead-letters", "/ui/tasks/t");
});

test("the timeline tells transitions and calls in the order in which they happened, with what they cost", async () => {
  await using s = await pagesStage(nats);
  const agent = agentOf(async ({ step, approval, effect }) => {
    await step("first", () => 1);
    await approval("go");
    await step("second", () => 2);
    return effect("post", { run: () => ({ sent: true }) });
  });
  const boss = await s.visitor("boss");
  await s.submit({}, { id: "t" });
  const comes = (state: Task["state"]) =>
    until(`t is ${state}`, async () => {
      await s.drain(agent);
      return (await s.task("t")).state === state;
    });
  await comes("waiting");
  const question = await boss.field("/ui/tasks/t", "question");
  await boss.post("/ui/tasks/t/answer", { question, name: "go", approved: "yes" });
  await comes("completed");
  const { text } = await boss.get("/ui/tasks/t");
  const told = [
    ...text.matchAll(/<strong>(\w+)<\/strong> <span|<span class="kind">[^<]*<\/span> <code>([^<]*)</g),
  ];
  expect(told.map(([, event, call]) => event ?? call)).toEqual(
    "submit claim first#1 go#1 wait signal wake claim second#1 post#1 complete".split(" "),
  );
  expect(text).toContain("No model was asked.");
});

describe("a hundred thousand tasks", () => {
  const MANY = 30_000;

  /** Straight into the bucket, with many under way at once: a submit for each would take minutes. */
  async function seed({ nc, settings }: Wired): Promise<void> {
    const now = Date.now();
    const envelope = {
      v: 1,
      agent: "tested",
      lane: 0,
      input: {},
      inputHash: "h",
      at: now,
      stamp: "s",
      by: "me",
    };
    const base = submitted({ ...envelope, id: "x" } as Envelope, "Q");
    const bucket = `$KV.${settings.namespace}-tasks.task.`;
    for (let from = 0; from < MANY; from += 2_000) {
      const sent = Array.from({ length: 2_000 }, (_, i) => {
        const id = `t-${from + i}`;
        const task = { ...base, id, state: "completed", result: 1, expiresAt: now + 1e9 };
        return nc.request(bucket + id, JSON.stringify(task), { timeout: 30_000 });
      });
      await Promise.all(sent);
    }
  }

  test("no page asks for more than a page or two of documents", async () => {
    await clearOfMidnight();
    await using s = await pagesStage(nats);
    const boss = await s.visitor("boss");
    // The first visit notes the use of its token.
    await boss.get("/ui/nowhere");
    await seed(s.deps);
    const { store, asked } = counting(s.deps.store);
    Object.assign(s.deps, { store });
    const asks = async (path: string) => {
      asked.length = 0;
      const { status, text } = await boss.get(path);
      expect(status).toBe(200);
      return { asked: asked.toSorted(), text };
    };
    const token = "getRecord";
    const overview = await asks("/ui");
    // Of each of its two agents, whether it is paused.
    const pauses = ["getRecord", "getRecord"];
    const counted = ["list 501", "list 501", "list 501", "list 501"];
    expect(overview.asked).toEqual([token, ...pauses, "list 100", ...counted]);
    // What took long is not asked for again at once.
    expect((await asks("/ui")).asked).toEqual([token, ...pauses, "list 100"]);
    expect(overview.text).toContain("more changed today");
    const tasks = await asks("/ui/tasks");
    expect(tasks.asked).toEqual([token, "list 50"]);
    expect(tasks.text.match(/<tr id="t-/g)).toHaveLength(50);
    const older = /href="(\/ui\/tasks\?cursor=\d+)"/.exec(tasks.text)?.[1] as string;
    const next = await asks(older);
    expect(next.asked).toEqual([token, "list 50"]);
    expect(next.text).toContain(`t-${MANY - 51}`);
    expect(next.text).not.toContain(`t-${MANY - 50}<`);
    const none = await asks("/ui/tasks?state=waiting");
    expect(none.asked).toEqual([token, "list 50"]);
    expect(none.text).toContain("Older ones may match.");
    expect((await asks("/ui/dead-letters")).asked).toEqual([token, "list 50"]);
    expect((await asks("/ui/tasks/t-5")).asked).toEqual(["get", "getHead", token]);
  }, 180_000);
});

test("of a journal of thousands of entries the newest are read, and the rest is said to be there", async () => {
  await using s = await pagesStage(nats);
  const boss = await s.visitor("boss");
  // The first visit notes the use of its token.
  await boss.get("/ui/nowhere");
  await s.submit({}, { id: "t" });
  const task = { ...(await s.task("t")), state: "running", fence: 1, fresh: true } as unknown as Running;
  const journal = await openJournal(s.deps, task, 1, () => {});
  const entries = Array.from(
    { length: 2_000 },
    (_, at): Entry => ({ kind: "step", key: `s#${at + 1}`, at, alone: true, value: at }),
  );
  await Promise.all(entries.map((entry) => journal.append(entry)));
  const { store, asked } = counting(s.deps.store);
  Object.assign(s.deps, { store });
  const { text } = await boss.get("/ui/tasks/t");
  expect(asked.toSorted()).toEqual(["get", "getHead", "getPart", "getPart", "getRecord"]);
  expect(text).toContain("s#2000");
  const shown = text.match(/<li id="j-/g)?.length ?? 0;
  expect(shown).toBeGreaterThan(50);
  expect(shown).toBeLessThan(200);
  expect(text).toContain(`${(2_000 - shown).toLocaleString("en")} older entries`);
});

test.each(TARGETS)("the dashboard as deployed on %s", async (target) => {
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  await using api = await deploy(await bundle("api", target), varsOf(w, target));
  const redirect = "manual";
  expect((await fetch(`${api.url}/`, { redirect })).headers.get("location")).toBe("/ui");
  const headers = { "sec-fetch-site": "same-origin" };
  const body = new URLSearchParams({ token });
  const login = await fetch(`${api.url}/ui/login`, { method: "POST", redirect, headers, body });
  expect(login.status).toBe(303);
  const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] as string;
  expect(cookie).toBe(`pawl=${token}`);
  const overview = await fetch(`${api.url}/ui`, { headers: { cookie } });
  expect(overview.status).toBe(200);
  expect(overview.headers.get("content-security-policy")).toContain("default-src 'none'");
  const text = await overview.text();
  expect(text).toContain("walker");
  const live = await fetch(`${api.url}/ui/live`, { headers: { cookie } });
  const reader = (live.body as ReadableStream<Uint8Array>).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("retry:");
  deps.bus.announce({ id: "x", agent: "walker" });
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("event: changed");
  await reader.cancel();
  const key = /name="key" value="(\w+)"/.exec(text)?.[1] as string;
  const leave = { method: "POST", redirect, body: new URLSearchParams({ key }) } as const;
  expect((await fetch(`${api.url}/ui/logout`, { ...leave, headers: { ...headers, cookie } })).status).toBe(
    303,
  );
});
