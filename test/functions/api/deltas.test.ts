import { afterAll, beforeAll, expect, test } from "vitest";
import { type Reply, startModel } from "../../../infra/local/model.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { anthropic } from "../../../shared/adapters/anthropic.ts";
import { deltaHolder } from "../../../shared/adapters/jetstream/delta-holder.ts";
import { deltaListener } from "../../../shared/adapters/jetstream/delta-listener.ts";
import { createClient } from "../../../shared/client.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import { readJournal } from "../../../shared/journal/journal.ts";
import type { Delta } from "../../../shared/ports/deltas.ts";
import { serve } from "../../../shared/runner/serve.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { agentOf } from "../../support/bench.ts";
import { MODEL } from "../../support/http/asking.ts";
import { follow, type SseEvent, wordOf } from "../../support/http/sse.ts";
import { webStage } from "../../support/http/web.ts";
import { pawl } from "../../support/servers/runners.ts";
import { testNats, wired } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const TURN = "ask/turn 1#1";
/** In so many pieces, with time between them. */
const slowly = (words: readonly string[], more: object = {}): Reply => ({
  content: words.map((text) => ({ type: "text", text })),
  pause: 60,
  ...more,
});
const WORDS = Array.from({ length: 6 }, (_, i) => `the ${i + 1}. of some words, `);

/** Ann's task, whose handler asks a model once, in this process; and everything that is said at NATS. */
async function stage(reply: (count: number) => Reply, given: Partial<Settings> = {}) {
  const s = await webStage(nats, "nats-kv", undefined, given);
  const model = await startModel((_, count) => reply(count));
  const runner = await wired(s.world.config);
  const tells = deltaHolder(runner.nc, runner.settings);
  Object.assign(runner, { model: anthropic({ apiKey: "test", baseUrl: model.url }), tells });
  Object.assign(s.deps, { hears: deltaListener(s.deps.nc, s.deps.settings) });
  const ann = await s.token("ann");
  await s.submit({}, { id: "t", meta: { owner: "ann" } });
  const said: string[] = [];
  const { namespace } = s.deps.settings;
  const isDelta = (subject: string, text: string) =>
    subject.startsWith(`${namespace}.deltas.`) || (/^_INBOX/.test(subject) && text.includes('"at":'));
  const ear = await wired(s.world.config);
  ear.nc.subscribe(">", {
    callback: (_, message) => {
      if (isDelta(message.subject, message.string())) said.push(message.subject);
    },
  });
  await ear.nc.flush();
  const open = (query = "?deltas=true", after?: string) =>
    s.request(`/v1/tasks/t/events${query}`, {
      token: ann,
      ...(after && { headers: { "last-event-id": after } }),
    });
  const agent = agentOf(async ({ llm }) => (await llm("ask", { model: MODEL, prompt: "?" })).text);
  const run = () =>
    serve(runner, { name: "tested", agent, mode: "drain", stop: new AbortController().signal });
  return Object.assign(s, {
    model,
    runner,
    said,
    ann,
    open,
    run,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([runner, ear, s.deps].map((one) => one[Symbol.asyncDispose]()));
      await model[Symbol.asyncDispose]();
    },
  });
}

const isDelta = ({ event }: SseEvent) => event === "delta";
/** As whoever follows them is told to. */
const textOf = (deltas: readonly SseEvent[]) =>
  deltas.reduce((text, { data }) => text.slice(0, data.at as number) + data.text, "");

test("a turn is told while it runs, to whoever asks for it, and its end takes its place", async () => {
  await using s = await stage(() => slowly(WORDS));
  const [events, plain] = [await follow(s.open()), await follow(s.open(""))];
  const running = s.run();
  await events.until(`delta ${TURN}`);
  // It is not stored yet, and the model has not said all of it.
  expect(s.model.requests.at(-1)?.done).toBe(false);
  expect((await readJournal(s.deps, "t", () => {}))?.entries.map(({ kind }) => kind)).toEqual(["intent"]);
  // Who comes in the middle is told the beginning too.
  const late = await follow(s.open());
  await Promise.all([events.rest(), plain.rest(), late.rest()]);
  expect(await running).toEqual({ completed: 1 });
  const [deltas, others] = [events.seen.filter(isDelta), events.seen.filter((one) => !isDelta(one))];
  expect(deltas.length).toBeGreaterThan(2);
  for (const { data } of deltas) expect(data).toMatchObject({ fence: 1, key: TURN });
  for (const { seen } of [events, late]) {
    expect(textOf(seen.filter(isDelta))).toBe(WORDS.join(""));
    const words = seen.map(wordOf);
    expect(words.lastIndexOf(`delta ${TURN}`)).toBeLessThan(words.indexOf(`receipt ${TURN}`));
  }
  // Nothing else is different, also for who goes on behind a delta.
  expect(others).toEqual(plain.seen);
  const rest = await follow(s.open("", deltas.at(-1)?.id));
  await rest.rest();
  expect(rest.words()).toEqual([`receipt ${TURN}`, "complete", "end completed"]);
});

test("where nobody asks for it, nothing is sent", async () => {
  await using s = await stage(() => slowly(WORDS));
  const plain = await follow(s.open(""));
  await s.run();
  await plain.rest();
  expect(s.said).toEqual([]);
});

test("the client tells it, each with the id of what came before", async () => {
  await using s = await stage(() => slowly(WORDS));
  const request: typeof fetch = async (url, init) =>
    s.request(String(url).replace("http://127.0.0.1", ""), {
      token: s.ann,
      headers: Object.fromEntries(new Headers(init?.headers)),
    });
  const pawl = createClient({ url: "http://127.0.0.1", token: s.ann, fetch: request });
  const running = s.run();
  let [text, before] = ["", ""];
  for await (const { kind, id, data } of pawl.task("t").events({ deltas: true })) {
    if (kind === "delta") [text] = [text.slice(0, data.at) + data.text, expect(id).toBe(before)];
    before = id;
  }
  expect(text).toBe(WORDS.join(""));
  await running;
});

test("a reader that does not read holds up neither the turn nor the others", async () => {
  const much = Array.from({ length: 12 }, () => "x".repeat(5_000));
  await using s = await stage(() => slowly(much));
  const stuck = await s.open();
  const events = await follow(s.open());
  await Promise.all([s.run(), events.rest()]);
  // Whoever waited for it would wait for ever.
  expect(textOf(events.seen.filter(isDelta))).toHaveLength(60_000);
  await stuck.body?.cancel();
});

test.concurrent.each(["SIGKILL", "SIGSTOP"] as const)(
  "a turn whose holder was stopped in the middle by %s starts over, under a higher fence",
  async (signal) => {
    let isStopped = false;
    const reply = () =>
      isStopped ? slowly(["other words"]) : slowly(["the first words", "?"], { stallAfter: 4 });
    await using s = await stage(reply, { ackWait: 4_000 });
    const env = { ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: s.model.url };
    await s.deps.bus.ensure({ ...s.queue, agent: "writer" });
    await submit(s.deps, { agent: "writer", lanes: 1, id: "w", input: {}, meta: { owner: "ann" } });
    const events = await follow(s.request("/v1/tasks/w/events?deltas=true", { token: s.ann }));
    const runners = [1, 2].map(() => pawl(s.world, ["run", "writer", "--json"], env));
    const told = () => textOf(events.seen.filter(isDelta));
    while (told() !== "the first words") await events.take(1);
    const { data: before } = await events.until(`delta ${TURN}`);
    isStopped = true;
    const task = (await s.deps.store.get("w"))?.task;
    const holder = runners.find(({ pid }) => task?.state === "running" && task.runner.endsWith(`-${pid}`));
    holder?.child.kill(signal);
    await events.until("takeover");
    while (told() === "the first words") await events.take(1);
    // It wakes while another one tells the same turn.
    holder?.child.kill("SIGCONT");
    await events.rest();
    const deltas = events.seen.filter(isDelta);
    const fences = deltas.map(({ data }) => data.fence as number);
    const again = deltas.filter(({ data }) => (data.fence as number) > (before.fence as number));
    expect(again[0]?.data).toMatchObject({ at: 0, key: TURN });
    expect([textOf(again), told()]).toEqual(["other words", "other words"]);
    expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    expect((await s.deps.store.get("w"))?.task).toMatchObject({ state: "completed", result: "other words" });
  },
  60_000,
);

test.concurrent("a holder that was cut off, and one that woke, tell nothing of their own; who comes back is told from the beginning", async () => {
  await using s = await stage(() => slowly([]));
  const claim = { agent: "tested", token: "place_claim" };
  const tells = deltaHolder(s.runner.nc, s.runner.settings);
  const heard: Delta[] = [];
  const hears = deltaListener(s.deps.nc, s.deps.settings);
  tells.listen(claim);
  await s.runner.nc.flush();
  const { stop: leave } = hears.hear(claim, (delta) => void heard.push(delta));
  const isTold = (text: string) => () => Promise.resolve(heard.at(-1)?.text === text);
  let said: string | undefined = "one ";
  const over = tells.say(claim, "k", () => said);
  await until("it is heard", isTold("one "));
  // Its lease is over, or its signal: what the process makes of its stream meanwhile is nobody's.
  said = undefined;
  await new Promise((resolve) => setTimeout(resolve, 300));
  said = "one two ";
  await until("it is heard on", isTold("two "));
  // The connection breaks: whoever asked is forgotten, and asks again.
  await s.runner.nc.reconnect();
  said += "three ";
  await until("it is told again", isTold("one two three "));
  expect(heard.at(-1)).toEqual({ key: "k", at: 0, text: "one two three " });
  leave();
  await s.deps.nc.flush();
  const count = heard.length;
  over("one two three four");
  await s.runner.nc.flush();
  await s.deps.nc.flush();
  expect(heard).toHaveLength(count);
}, 30_000);
