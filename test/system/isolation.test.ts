import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { buryGivenUp } from "../../shared/dispatch/advisories.ts";
import { expireTasks } from "../../shared/dispatch/expire.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { serve } from "../../shared/runner/serve.ts";
import { createApp } from "../../shared/web/app.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { familyAgents, type Isolated, isolated } from "../support/servers/isolated.ts";
import { emulatorHost, hasEmulator } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";
import { until } from "../support/time/until.ts";

const never = new AbortController().signal;
const folder = tempAgents();

const FIRESTORE = {
  PAWL_STORE: "firestore-rest",
  GOOGLE_CLOUD_PROJECT: `p-${crypto.randomUUID().slice(0, 8)}`,
  FIRESTORE_EMULATOR_HOST: emulatorHost,
};

describe.each([
  { format: "conf", documents: "NATS KV", env: {}, here: true },
  { format: "jwt", documents: "NATS KV", env: {}, here: true },
  { format: "conf", documents: "Firestore", env: FIRESTORE, here: hasEmulator },
] as const)("identities by $format, documents in $documents", ({ format, env, here }) => {
  if (!here) return void test.skip("without an emulator");
  let stage: Isolated;
  const wired: Record<string, Wired> = {};
  let token = "";
  beforeAll(async () => {
    await familyAgents(folder, SHARED);
    stage = await isolated(folder, format, { PAWL_ACK_WAIT: "5s", ...env });
    for (const name of ["operator", "api", "dispatch", "reconcile", "boss", "helper", "stranger"])
      wired[name] = await stage.as(name);
    const scopes = ["submit", "read", "operate"] as const;
    token = await createToken((wired.operator as Wired).store, { owner: "o", scopes, createdAt: Date.now() });
  }, 60_000);
  afterAll(() => stage?.[Symbol.asyncDispose]());

  const call = async (method: string, path: string, body?: object) => {
    const app = createApp({ agents: stage.known });
    const deps = { ...(wired.api as Wired), lanesOf: () => 1 };
    const init = {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body && { body: JSON.stringify(body) }),
    };
    const answer = await app.request(path, init, { open: async () => deps, log: deps.log });
    return { status: answer.status, text: await answer.text() };
  };
  const runs = async (name: string) => {
    const deps = { ...(wired[name] as Wired), lanesOf: () => 1 };
    return serve(deps, { name, agent: await stage.agent(name), mode: "drain", stop: never });
  };
  const dispatches = async () => {
    const deps = { ...(wired.dispatch as Wired), lanesOf: () => 1 };
    await buryGivenUp(deps, never);
    for (const { name } of stage.known) await dispatchDue(deps, name, never);
    await expireTasks(deps, never);
  };
  const stateOf = async (id: string) =>
    (JSON.parse((await call("GET", `/v1/tasks/${id}`)).text) as { state: string }).state;

  test("a whole story, every identity in its place", async () => {
    const submitted = await call("POST", "/v1/tasks", { agent: "boss", id: "story", input: { fails: true } });
    expect(submitted).toMatchObject({ status: 201 });
    await until("the boss waits for its answer", async () => {
      await runs("boss");
      await runs("helper");
      await dispatches();
      const { text } = await call("GET", "/v1/tasks/story");
      return text.includes("approval:publish");
    });
    expect(await call("POST", "/v1/tasks/story/approvals/publish", { approved: true })).toMatchObject({
      status: 200,
    });
    await runs("boss");
    expect(await stateOf("story")).toBe("completed");
    const { text } = await call("GET", "/v1/tasks/story");
    expect(JSON.parse(text)).toMatchObject({
      result: { first: { n: 1 }, sent: "string", helped: { helped: 10 } },
    });
    expect(
      await call("POST", "/v1/tasks", { agent: "stranger", id: "hidden", input: { secret: "of stranger" } }),
    ).toMatchObject({ status: 201 });
    expect(await runs("stranger")).toEqual({ completed: 1 });
    for (const path of ["/health", "/metrics", "/v1/tasks", "/v1/agents", "/v1/audit", "/v1/dead-letters"])
      expect(await call("GET", path), path).toMatchObject({ status: 200 });
    await wired.stranger?.meter.flush();
    expect((await call("GET", "/metrics")).text).toMatch(/pawl_deliveries_total\{.*agent="stranger"/);
    const pages: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page = await call("GET", `/v1/tasks?limit=1${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      const { tasks, cursor: next } = JSON.parse(page.text) as { tasks: { id: string }[]; cursor?: string };
      pages.push(...tasks.map(({ id }) => id));
      cursor = next;
    }
    expect(pages).toHaveLength(3);
    expect(pages.slice(0, 2)).toEqual(["hidden", "story"]);
    const report = await reconciled(wired.reconcile as Wired, { repair: true });
    expect(namesOf(report)).toEqual([]);
  }, 60_000);

  test("an agent submits to its relatives only", async () => {
    await call("POST", "/v1/tasks", { agent: "stranger", id: "wrong", input: { submits: true } });
    await runs("stranger");
    const { text } = await call("GET", "/v1/tasks/wrong");
    expect(text).toContain("does not reach helper");
  });
});
