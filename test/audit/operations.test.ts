import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { AuditEntry } from "../../shared/audit/entry.ts";
import { accept, cancel, setQuota } from "../../shared/audit/operations.ts";
import { listAudit } from "../../shared/audit/read.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { findToken } from "../../shared/web/tokens.ts";
import { AGENT, agentOf } from "../support/bench.ts";
import { ALL } from "../support/http/api.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const asking = agentOf(async ({ approval }) => void (await approval("go")), { attempts: 1 });

const told = async (deps: Deps, task: string) =>
  (await listAudit(deps, { task }, 100)).entries
    .map(({ op, outcome, code, actor, detail, agent }) => ({ op, outcome, code, actor, detail, agent }))
    .reverse();

test("every operation by the API and the dashboard names who asked: in the history, and in the trail", async () => {
  await using s = await pagesStage(nats);
  const boss = await s.visitor("boss");
  const id = (await findToken(s.deps.store, boss.token))?.id as string;
  const post = (path: string, body: object = {}) => s.call(boss.token, "POST", `/v1/tasks/${path}`, body);
  const submitted = await s.call(boss.token, "POST", "/v1/tasks", { agent: "tested", input: {}, id: "t" });
  expect(submitted.status).toBe(201);
  await until("t waits", async () => {
    await s.drain(asking);
    return (await s.task("t")).state === "waiting";
  });
  await post("t/signal", { name: "paid", value: { card: "4111 1111 1111 1111" }, early: true });
  const question = await boss.field("/ui/tasks/t", "question");
  await boss.post("/ui/tasks/t/answer", { question, name: "go", approved: "no", note: "a secret note" });
  await until("t failed", async () => {
    await s.drain(asking);
    return (await s.task("t")).state === "failed";
  });
  await post("t/redrive", { fromScratch: true });
  await post("t/cancel");
  expect((await post("t/cancel")).status).toBe(409);

  const api = `boss via api (${id})`;
  const { history } = await s.task("t");
  const people = history.filter(({ by }) => by.includes(" via ")).map(({ event, by }) => [event, by]);
  expect(people).toEqual([
    ["submit", api],
    ["signal", api],
    ["signal", `boss via dashboard (${id})`],
    ["wake", `boss via dashboard (${id})`],
    ["redrive", api],
    ["cancel", api],
  ]);
  // The claims are the runner's own.
  expect(history.find(({ event }) => event === "claim")?.by).toBe(s.deps.runner);
  expect((await boss.get("/ui/tasks/t")).text).toContain(`by boss via dashboard (${id})`);

  const byApi = { name: "boss", token: id, via: "api" };
  const ended = { outcome: "done", agent: "tested" };
  expect(await told(s.deps, "t")).toMatchObject([
    { op: "signal", outcome: "asked", actor: byApi, detail: "paid" },
    { op: "signal", ...ended, actor: byApi },
    { op: "reject", outcome: "asked", actor: { ...byApi, via: "dashboard" }, detail: "approval:go" },
    { op: "reject", ...ended, actor: { ...byApi, via: "dashboard" } },
    { op: "redrive", outcome: "asked", detail: "from scratch" },
    { op: "redrive", ...ended },
    { op: "cancel", outcome: "asked" },
    { op: "cancel", ...ended },
    { op: "cancel", outcome: "asked" },
    { op: "cancel", outcome: "refused", code: "illegal_transition" },
  ]);
  // Neither what a signal says nor a note is in it.
  expect(JSON.stringify(await listAudit(s.deps, {}, 100))).not.toMatch(/4111 1111|secret note/);
});

test("what can't be written down is not done, and what was done by one that died right after is written down", async () => {
  await using s = await pagesStage(nats);
  await s.submit({}, { id: "t" });
  const deps: Deps = { ...s.deps, actor: { name: "jo", via: "cli" } };
  const away = { ...deps.store, putRecord: async () => Promise.reject(new Error("no trail")) };
  await expect(cancel({ ...deps, store: away }, "t")).rejects.toThrow("no trail");
  expect((await s.task("t")).state).toBe("dispatched");
  // It dies with the document written: no outcome follows.
  let isDead = false;
  const dying: Deps["store"] = {
    ...deps.store,
    replace: async (...given) => {
      const written = await deps.store.replace(...given);
      isDead = true;
      return written;
    },
    putRecord: (...given) => (isDead ? new Promise(() => {}) : deps.store.putRecord(...given)),
  };
  void cancel({ ...deps, store: dying }, "t").catch(() => {});
  await until("it is cancelled", async () => (await s.task("t")).state === "cancelled");
  expect((await s.task("t")).history.at(-1)).toMatchObject({ event: "cancel", by: "jo via cli" });
  expect(await told(s.deps, "t")).toMatchObject([{ op: "cancel", outcome: "asked", actor: { name: "jo" } }]);
});

test("GET /v1/audit: for operators, by pages; a token for some agents sees what was done to their tasks", async () => {
  await using s = await pagesStage(nats);
  const [boss, clerk, one] = [
    await s.token("boss", ALL),
    await s.token("clerk", ["submit", "read"]),
    await s.token("one", ALL, ["other"]),
  ];
  for (const id of ["a", "b", "c"]) {
    await s.submit({}, { id });
    expect((await s.call(boss, "POST", `/v1/tasks/${id}/cancel`, {})).status).toBe(200);
  }
  const list = (token: string, query = "") => s.call(token, "GET", `/v1/audit${query}`);
  expect((await list(clerk)).status).toBe(403);
  const all = (await list(boss)).body.entries as { n: number; task: string }[];
  expect(all.map(({ n }) => n)).toEqual([6, 5, 4, 3, 2, 1]);
  const first = (await list(boss, "?limit=4")).body;
  expect(first.entries).toEqual(all.slice(0, 4));
  expect((await list(boss, `?limit=4&cursor=${first.cursor}`)).body).toEqual({ entries: all.slice(4) });
  expect((await list(boss, "?task=b")).body.entries).toEqual(all.filter(({ task }) => task === "b"));
  expect((await list(boss, "?since=2999-01-01T00:00:00Z")).body).toEqual({ entries: [] });
  for (const query of ["?op=rm", "?cursor=x", "?limit=0", "?since=yesterday", "?who=me"])
    expect((await list(boss, query)).status, query).toBe(422);
  expect((await list(one)).body).toEqual({ entries: [] });
  await s.deps.bus.ensure({ ...s.queue, agent: "other" });
  await s.submit({}, { id: "o", agent: "other" });
  expect((await s.call(boss, "POST", "/v1/tasks/o/cancel", {})).status).toBe(200);
  const deps = { ...s.deps, actor: { name: "jo", via: "cli" } as const };
  for (const agent of ["other", AGENT]) await setQuota(deps, { kind: "agent", name: agent }, { tasks: 3 });
  await setQuota(deps, { kind: "owner", name: "ann" }, { tasks: 3 });
  const own = (await list(one)).body.entries as AuditEntry[];
  expect(own.map(({ op, task, agent, outcome }) => [op, task, agent, outcome])).toEqual([
    ["quota set", undefined, "other", "done"],
    ["quota set", undefined, "other", "asked"],
    // Only when it was done it was known whose it was.
    ["cancel", "o", "other", "done"],
  ]);
  expect((await list(one, "?task=a")).body).toEqual({ entries: [] });
});

test("who accepted a document that another hand had changed is in its history, and in the trail", async () => {
  await using s = await pagesStage(nats);
  await s.submit({}, { id: "t" });
  const bucket = await new Kvm(s.deps.nc).open(`${s.world.config.settings.namespace}-tasks`);
  const there = (await bucket.get("task.t"))?.json<object>();
  await bucket.put("task.t", JSON.stringify({ ...there, attempts: 7 }));
  const deps: Deps = { ...s.deps, actor: { name: "jo", via: "cli" } };
  expect(await accept(deps, "t")).toEqual({ document: true, journal: false });
  expect((await s.task("t")).history.at(-1)).toMatchObject({ event: "accept", by: "jo via cli" });
  expect(await told(s.deps, "t")).toMatchObject([
    { op: "accept", outcome: "asked", actor: { name: "jo" } },
    { op: "accept", outcome: "done", actor: { name: "jo" }, agent: AGENT },
  ]);
});

test("a child is its parent's owner's, who sees it by the API", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.token("ann");
  const bob = await s.token("bob");
  const deps = { ...s.deps, lanesOf: () => 1 };
  const parent = agentOf(async ({ submit }) => (await submit("tested", { n: 1 }, { key: "k" })).id);
  const { serve } = await import("../../shared/runner/serve.ts");
  await s.call(ann, "POST", "/v1/tasks", { agent: "tested", input: {}, id: "p" });
  const stop = new AbortController().signal;
  await until("the parent is done", async () => {
    await serve(deps, { name: "tested", agent: parent, mode: "once", stop });
    return (await s.task("p")).state === "completed";
  });
  const task = await s.task("p");
  const child = task.state === "completed" ? String(task.result) : "";
  expect(await s.call(ann, "GET", `/v1/tasks/${child}`)).toMatchObject({
    status: 200,
    body: { parent: "p", meta: { owner: "ann" } },
  });
  expect((await s.call(bob, "GET", `/v1/tasks/${child}`)).status).toBe(404);
});

test("nobody who acts for a person goes round the trail", () => {
  const root = resolve(import.meta.dirname, "../..");
  const files = ["shared/web", "infra/cli", "functions"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(root, folder, name)),
  );
  expect(files.length).toBeGreaterThan(60);
  const past = files.filter((file) => {
    const text = readFileSync(file, "utf8");
    const imports = [...text.matchAll(/^import (?!type )([^;]*) from "[^"]*\/(\w+\/[\w-]+)\.ts";$/gms)];
    const does = imports.filter(([, names = "", from = ""]) => DOING[from]?.test(names));
    // What is no operation on a task or a quota is written down where it is asked for.
    return does.some(([, , from = ""]) => !AUDITED_THERE.has(from) || !/\baudited\(/.test(text));
  });
  expect(past.map((file) => relative(root, file))).toEqual([
    // Woken by a schedule: nobody asked for it.
    "functions/reconcile.ts",
  ]);
});

/** What changes something for a person who asked, by where it is. */
const DOING: Readonly<Record<string, RegExp>> = {
  "dispatch/operate": /./s,
  "dispatch/accept": /./s,
  "pause/pause": /\b(pauseAgent|resumeAgent)\b|\*/,
  "quota/quotas": /\bsetQuota\b|\*/,
  "web/tokens": /\b(createToken|revokeToken)\b|\*/,
  "reconcile/reconcile": /\breconcile\b|\*/,
};
const AUDITED_THERE = new Set(["web/tokens", "reconcile/reconcile"]);
