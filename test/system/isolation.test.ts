import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configFrom } from "../../functions/wiring/config.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { type Identity, planOf } from "../../infra/creds/plan.ts";
import { writeCreds } from "../../infra/creds/write.ts";
import { examineLive } from "../../infra/doctor/examine.ts";
import { gather } from "../../infra/doctor/live/gather.ts";
import { deltaHolder } from "../../shared/adapters/jetstream/delta-holder.ts";
import { deltaListener } from "../../shared/adapters/jetstream/delta-listener.ts";
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

  test("the API hears what a turn of an agent says, in as many pieces as there are, and no other agent does", async () => {
    const [api, boss, stranger] = [wired.api as Wired, wired.boss as Wired, wired.stranger as Wired];
    const claim = { agent: "boss", token: "place_claim" };
    const others: unknown[] = [];
    const tells = deltaHolder(boss.nc, boss.settings);
    tells.listen(claim);
    await boss.nc.flush();
    const strange = deltaListener(stranger.nc, stranger.settings).hear(claim, (one) => others.push(one));
    let [said, heard] = ["", ""];
    const hearing = deltaListener(api.nc, api.settings).hear(claim, ({ at, text }) => {
      heard = heard.slice(0, at) + text;
    });
    const over = tells.say(claim, "k", () => said);
    for (const word of "a turn of some words".split(" ")) {
      said += `${word} `;
      await until(`"${word}" is heard`, async () => heard === said);
    }
    over();
    hearing.stop();
    strange.stop();
    expect(others).toEqual([]);
  });

  test("an agent is paused and resumed: its own identity sees it", async () => {
    await call("POST", "/v1/tasks", { agent: "stranger", id: "held", input: {} });
    const paused = await call("POST", "/v1/agents/stranger/pause", { why: "the board is down" });
    expect(paused).toMatchObject({ status: 200 });
    expect(await runs("stranger")).toEqual({});
    expect(await stateOf("held")).toBe("dispatched");
    const { agents } = JSON.parse((await call("GET", "/v1/agents")).text) as {
      agents: { name: string; paused?: { why: string } }[];
    };
    expect(agents.filter((one) => one.paused)).toMatchObject([
      { name: "stranger", paused: { why: "the board is down" } },
    ]);
    expect(await call("POST", "/v1/agents/stranger/resume")).toMatchObject({ status: 200 });
    expect(await runs("stranger")).toEqual({ completed: 1 });
    expect(await stateOf("held")).toBe("completed");
  });

  test("what the server lets each identity do is what was planned, and what differs is named", async () => {
    const env = await stage.env("operator");
    const look = async (creds: string) => {
      const { findings, unseen } = examineLive(await gather({ env, agents: folder, creds }));
      const said = findings.filter(({ rule }) => rule.startsWith("permission")).map(({ is }) => is);
      return { said, unseen: unseen.filter((one) => one.startsWith("what ")) };
    };
    expect(await look(stage.folder)).toEqual({ said: [], unseen: [] });
    const others = "api, dispatch, reconcile, boss, helper, stranger";
    expect((await look(join(folder, "none"))).unseen).toEqual([
      expect.stringMatching(new RegExp(`^what ${others} may do at NATS: no file in `)),
    ]);
    const { settings, store } = configFrom(env);
    const plan = planOf(settings, stage.known, store === "nats-kv");
    const altered = (one: Identity): Identity => {
      if (one.name === "api")
        return { ...one, publish: [...one.publish, "orders.>"], denied: one.denied.slice(1) };
      if (one.name !== "boss") return one;
      const publish = one.publish.filter((subject) => !subject.startsWith("$JS.ACK."));
      return { ...one, publish, subscribe: [...one.subscribe, "spied.*"], answers: false };
    };
    // A JWT says by itself what its identity may do: the server has to be told of nothing, and the others stay.
    const isWritten = ({ name }: Identity) => format === "conf" || name === "api" || name === "boss";
    const core = { ...plan.core, identities: plan.core.identities.filter(isWritten).map(altered) };
    const agents = plan.agents
      .filter(({ identity }) => isWritten(identity))
      .map((one) => ({ ...one, ...(format === "jwt" && { imports: [] }), identity: altered(one.identity) }));
    // By the keys that there are: the server takes them for the same identities.
    await writeCreds({ plan: { core, agents }, format, folder: stage.folder });
    if (format === "conf") await stage.nats.reload(await readFile(join(stage.folder, "nats.conf"), "utf8"));
    const ack = plan.agents[0]?.identity.publish.find((subject) => subject.startsWith("$JS.ACK."));
    await expect
      .poll(async () => (await look(stage.folder)).said)
      .toEqual([
        "api may publish to orders.>, publish to $JS.API.STREAM.DELETE.>, which pawl creds does not give it",
        "boss may subscribe to spied.*, which pawl creds does not give it",
        `boss may not publish to ${ack}, answer what it is asked, which pawl creds gives it`,
      ]);
  });

  test("an agent submits to its relatives only", async () => {
    await call("POST", "/v1/tasks", { agent: "stranger", id: "wrong", input: { submits: true } });
    await runs("stranger");
    const { text } = await call("GET", "/v1/tasks/wrong");
    expect(text).toContain("does not reach helper");
  });
});
