import { jetstreamManager } from "@nats-io/jetstream";
import type { MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { deltaListener } from "../../shared/adapters/jetstream/delta-listener.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { readCounts } from "../../shared/meter/meter.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { Task } from "../../shared/task/document.ts";
import { createToken } from "../../shared/web/tokens.ts";
import {
  BAIT,
  baited,
  changed,
  header,
  json,
  overheard,
  readable,
  SECRET,
  TOKEN,
  targets,
  written,
} from "../support/faults/forbidden.ts";
import { reconciled } from "../support/reconciling.ts";
import { familyAgents, type Isolated, isolated } from "../support/servers/isolated.ts";
import { testNats } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";
import { until } from "../support/time/until.ts";

const never = new AbortController().signal;
const folder = tempAgents();
/** The permissions of users inside agents' accounts are a second fence: without them the accounts have to hold by themselves. */
const withoutPermissions = (config: string) => {
  const from = config.indexOf('"PAWL_boss" {');
  const users = /permissions: \{\s+publish: .*\n\s+subscribe: .*(\n\s+allow_responses: .*)?\s+\}/g;
  return config.slice(0, from) + config.slice(from).replace(users, "");
};

test("in one account no permissions would hold: the server writes an answer wherever it was asked to", async () => {
  const config = `authorization { users: [
    { user: core, password: p }
    { user: evil, password: p, permissions: { publish: ["$JS.API.STREAM.MSG.GET.Q"], subscribe: ["_INBOX_evil.>"] } }
  ] }`;
  await using nats = await testNats({ config });
  const as = (user: string) => connect({ servers: nats.url, user, pass: "p", inboxPrefix: `_INBOX_${user}` });
  const [core, evil] = [await as("core"), await as("evil")];
  const { streams } = await jetstreamManager(core);
  await streams.add({ name: "KV_pawl-tasks", subjects: ["$KV.pawl-tasks.>"] });
  await streams.add({ name: "Q", subjects: ["q.>"] });
  await core.request("q.1", BAIT);
  evil.publish(TOKEN, "refused");
  evil.publish("$JS.API.STREAM.MSG.GET.Q", JSON.stringify({ seq: 1 }), { reply: TOKEN });
  await until("a token was planted", async () => (await streams.info("KV_pawl-tasks")).state.messages > 0);
  expect((await streams.getMessage("KV_pawl-tasks", { last_by_subj: TOKEN }))?.string()).toContain(
    "msg_get_response",
  );
  await Promise.all([core.close(), evil.close()]);
});

describe.each([
  { format: "conf", named: "by conf" },
  { format: "jwt", named: "by jwt" },
  { format: "conf", named: "by accounts alone", edit: withoutPermissions },
] as const)("what an agent's credentials can't do, $named", ({ format, ...more }) => {
  let stage: Isolated;
  let api: Wired;
  let evil: NatsConnection;
  let core: NatsConnection;
  beforeAll(async () => {
    await familyAgents(folder, SHARED);
    stage = await isolated(folder, format, { PAWL_ACK_WAIT: "5s" }, "edit" in more ? more.edit : undefined);
    api = await stage.as("api");
    core = await stage.raw("operator");
    evil = await stage.raw("stranger");
    const deps = { ...api, lanesOf: () => 1 };
    await createToken((await stage.as("operator")).store, { owner: "o", scopes: ["operate"], createdAt: 1 });
    await submit(deps, { agent: "boss", lanes: 1, id: "secret", input: { secret: SECRET } });
    await submit(deps, { agent: "stranger", lanes: 1, id: "own", input: { bait: BAIT } });
    await api.store.putRecord("quotas", json({ secret: SECRET }));
    await api.store.putRecord("reports", json({ secret: SECRET }));
    await api.store.putText("audit-0", SECRET);
    // Its own message and document say what a token would say.
    evil.publish("pawl.tasks.stranger.0.g1.bait", BAIT);
    evil.publish("pawl.js.$KV.pawl_stranger.task.bait", BAIT);
    await evil.flush();
  }, 60_000);
  afterAll(() => stage?.[Symbol.asyncDispose]());

  /** Every stream and consumer that is not the attacker's own, with how far it has come. */
  const everything = async () => {
    const jsm = await jetstreamManager(core);
    const found: Record<string, unknown> = {};
    for await (const { config, state } of jsm.streams.list()) {
      const consumers = [];
      for await (const one of jsm.consumers.list(config.name)) consumers.push({ ...one, ts: "" });
      const isOwn = config.name === "KV_pawl_stranger" || config.name === "PAWL_stranger_0_g1";
      found[config.name] = isOwn ? { config, isEmptied: state.messages === 0 } : { config, state, consumers };
    }
    return found;
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve, 60));
  /** All that it was answered, in one text. */
  const answers = async (subject: string, data = "", hdrs?: MsgHdrs): Promise<string> => {
    const options = { timeout: 400, ...(hdrs && { headers: hdrs }) };
    const answer = await evil.request(subject, data, options).catch(() => undefined);
    if (!answer) return "";
    const text = answer.string();
    const { message } = (JSON.parse(text || "{}") ?? {}) as { message?: { data?: string } };
    return text + Buffer.from(message?.data ?? "", "base64").toString();
  };

  const APIS = ["$JS.API", "pawl.js"] as const;

  test.each(readable)("read %s", async (_, what, body) => {
    for (const prefix of APIS) {
      const said = await answers(`${prefix}.${what}`, body, header("Nats-Request-Info", '{"acc":"PAWL"}'));
      expect(said).not.toContain(SECRET);
      expect(said === "" || said.includes('"error"'), said).toBe(true);
    }
  });

  test.each(changed)("%s", async (_, what, body) => {
    const before = await everything();
    for (const prefix of APIS) await answers(`${prefix}.${what}`, body);
    await settled();
    expect(await everything()).toEqual(before);
  });

  const writes = written.map(([what, subject, hdrs]) => ({ what, subject, hdrs }));
  test.each(writes)("write $what", async ({ subject, hdrs }) => {
    const before = await everything();
    await answers(subject, BAIT, hdrs);
    await settled();
    expect(await everything()).toEqual(before);
    expect(await api.store.getRecord("token-planted")).toBeUndefined();
  });

  test.each(baited)("have the server write elsewhere, as the answer: %s", async (_, subject, body) => {
    const heard: string[] = [];
    const ear = core.subscribe("_INBOX_pawl_operator.ear", {
      callback: (_, { subject }) => void heard.push(subject),
    });
    const answering = evil.subscribe("pawl.holders.stranger.t", {
      callback: (_, one) => void one.respond(BAIT),
    });
    const before = await everything();
    for (const reply of [...targets, "_INBOX_pawl_operator.ear"]) evil.publish(subject, body, { reply });
    await evil.flush().catch(() => {});
    await settled();
    expect(await everything()).toEqual(before);
    expect(heard).toEqual([]);
    expect(await api.store.getRecord("token-planted")).toBeUndefined();
    ear.unsubscribe();
    answering.unsubscribe();
  });

  test("listen to others, and answer for them", async () => {
    const heard: string[] = [];
    const answer =
      (what: string) =>
      (error: Error | null, message: { subject: string; respond(data: string): boolean }) => {
        if (error) return;
        heard.push(`${what}: ${message.subject}`);
        message.respond("yes");
      };
    const ears = overheard.map((subject) => evil.subscribe(subject, { callback: answer(subject) }));
    await evil.flush().catch(() => {});
    const boss = await stage.as("boss");
    const token = "a-claim-of-the-boss";
    expect(await api.bus.isHeld({ agent: "boss", token })).toBe(false);
    const end = boss.bus.answerFor({ agent: "boss", token }, () => false);
    expect(await api.bus.isHeld({ agent: "boss", token })).toBe(false);
    end();
    const hearing = deltaListener(api.nc, api.settings).hear({ agent: "boss", token }, () => {});
    await submit({ ...api, lanesOf: () => 1 }, { agent: "boss", lanes: 1, id: "overheard", input: {} });
    await api.store.list({}, 10);
    await settled();
    hearing.stop();
    expect(heard.filter((one) => !one.includes(": pawl.holders.stranger"))).toEqual([]);
    for (const ear of ears) ear.unsubscribe();
  });

  test("announce changes of others' tasks", async () => {
    const heard: string[] = [];
    const end = api.bus.listen((id) => void heard.push(id));
    await until("its own is heard", async () => {
      evil.publish("pawl.events.boss.secret");
      evil.publish("pawl.events.stranger.own");
      return heard.includes("own");
    });
    expect(heard).not.toContain("secret");
    end();
  });

  test("have those who may do more act on a document of its own that names others", async () => {
    const deps = { ...(await stage.as("dispatch")), lanesOf: () => 1 };
    const own = (await deps.store.get("own"))?.task as unknown as Record<string, unknown>;
    const plant = async (id: string, task: object) => {
      await answers(`pawl.js.$KV.pawl_stranger.task.${id}`, json({ ...own, id, seal: undefined, ...task }));
      await answers(`pawl.js.$KV.pawl_stranger.due.stranger.dispatched.${id}`, "1");
      await answers(`pawl.js.$KV.pawl_stranger.due.boss.dispatched.${id}`, "1");
    };
    await plant("as-boss", { agent: "boss", updatedAt: 1 });
    await plant("to-boss", { queue: "PAWL_boss_0_g1", updatedAt: 1 });
    const before = (await everything()).PAWL_boss_0_g1;
    for (const { name } of stage.known) await dispatchDue(deps, name, never, { dispatchTimeout: 0 });
    expect((await everything()).PAWL_boss_0_g1).toEqual(before);
    for (const id of ["as-boss", "to-boss"])
      await expect(api.store.get(id), id).rejects.toThrow("can't be read");
  });

  test("take an id from another", async () => {
    const deps = { ...api, lanesOf: () => 1 };
    const own = (await api.store.get("own"))?.task;
    await answers("pawl.js.$KV.pawl_stranger.task.order-7", json({ ...own, id: "order-7", seal: undefined }));
    const submitted = { agent: "helper", lanes: 1, id: "order-7", input: { text: "of helper" } };
    expect(await submit(deps, submitted)).toMatchObject({ kind: "accepted" });
    expect((await api.store.get("order-7"))?.task).toMatchObject({ agent: "helper" });
    await answers("pawl.js.$KV.pawl_stranger.task.secret", json({ ...own, id: "secret", seal: undefined }));
    expect((await (await stage.as("api")).store.get("secret"))?.task).toMatchObject({ agent: "boss" });
    // In one process that has seen all of it, by the sweep and by a reconciliation.
    const jsm = await jetstreamManager(core);
    await answers("pawl.js.$KV.pawl_stranger.due.stranger.dispatched.secret", "1");
    for (const name of ["dispatch", "reconcile"]) {
      const long = { ...(await stage.as(name)), lanesOf: () => 1 };
      const { messages } = (await jsm.streams.info("PAWL_stranger_0_g1")).state;
      await dispatchDue(long, "stranger", never, { dispatchTimeout: 0 });
      const { tasks } = await long.store.due("stranger", "dispatched", { after: 0, until: Date.now() }, 10);
      expect(tasks.map(({ task }) => task.id)).not.toContain("secret");
      expect((await jsm.streams.info("PAWL_stranger_0_g1")).state.messages).toBe(messages);
      const { report } = await reconciled(long);
      expect(report.findings.named.filter(({ subject }) => subject.includes("secret"))).toMatchObject([
        { kind: "unreadable", subject: "stranger/secret" },
      ]);
      const there = await long.store.get("secret");
      expect(there?.task).toMatchObject({ agent: "boss" });
      expect(await long.store.getMany(["secret"])).toMatchObject([{ task: { agent: "boss" } }]);
      expect(await long.store.replace(there?.task as Task, there?.revision as string)).toMatchObject({
        kind: "written",
      });
    }
  });

  test("be taken for another's by who has found its document first", async () => {
    const deps = { ...(await stage.as("dispatch")), lanesOf: () => 1 };
    const own = (await api.store.get("own"))?.task;
    await answers("pawl.js.$KV.pawl_stranger.task.early", json({ ...own, id: "early", seal: undefined }));
    expect((await deps.store.get("early"))?.task).toMatchObject({ agent: "stranger" });
    const submitted = { agent: "helper", lanes: 1, id: "early", input: { text: "of helper" } };
    expect(await submit({ ...api, lanesOf: () => 1 }, submitted)).toMatchObject({ kind: "accepted" });
    const there = await deps.store.get("early");
    expect(there?.task).toMatchObject({ agent: "helper" });
  });

  test("spoil what is counted", async () => {
    const deps = { ...api, lanesOf: () => 1 };
    await answers("pawl.js.$KV.pawl_stranger.record.counts-0", "no json");
    await answers(
      "pawl.js.$KV.pawl_stranger.record.counts-1",
      json({
        'pawl_x_total{a="b"}\npawl_deliveries_total': 1,
        pawl_y_total: "1e9",
        pawl_z_total: -5,
        pawl_own_total: 7,
      }),
    );
    expect(await readCounts(deps.store)).toMatchObject({ pawl_own_total: 7 });
    const names = Object.keys(await readCounts(deps.store));
    expect(names.filter((name) => /\n|pawl_[yz]/.test(name))).toEqual([]);
  });

  test("and a relative can write no journal, and roll nothing up", async () => {
    const relative = await stage.raw("helper");
    const before = await everything();
    const request = (subject: string, hdrs?: MsgHdrs) =>
      relative
        .request(`pawl.js.$KV.pawl_boss.${subject}`, BAIT, { timeout: 400, ...(hdrs && { headers: hdrs }) })
        .catch(() => {});
    await request("journal.secret");
    await request("lease.secret");
    await request("record.x");
    await request("task.secret", header("Nats-Rollup", "all"));
    await settled();
    expect(await everything()).toEqual(before);
  });

  test("after all that, everything goes on", async () => {
    for (const name of ["boss", "helper", "boss"]) {
      const deps = { ...(await stage.as(name)), lanesOf: () => 1 };
      await serve(deps, { name, agent: await stage.agent(name), mode: "drain", stop: never });
    }
    expect((await api.store.get("order-7"))?.task).toMatchObject({
      state: "completed",
      result: { helped: 9 },
    });
    expect((await api.store.get("secret"))?.task).toMatchObject({ state: "waiting" });
  });
});
