import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { type Script, startModel } from "../../infra/local/model.ts";
import { readJournal } from "../../shared/journey/journal.ts";
import { submit } from "../../shared/journey/submit.ts";
import type { JsonObject } from "../../shared/task/json.ts";
import { lost } from "../../shared/task/ledger.ts";
import { laneOf } from "../../shared/task/names.ts";
import { pawl } from "../support/runners.ts";
import { testNats, wired, world } from "../support/stores.ts";
import { allCompleted, until } from "../support/until.ts";

const TURNS = 12;
const POSTS = 6;
/** Executions that a kill cut off in the middle. */
const INTERRUPTED = 40;
const MOST_KILLS = 25;
const LANES = 4;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Where a conversation is: the turn that is asked for now, from 1. */
const turnOf = (body: JsonObject) => ((body.messages as JsonObject[]).length - 1) / 2 + 1;
const taskOf = (body: JsonObject) => (body.messages as { content: string }[])[0]?.content as string;

const script: Script = (body, count) => {
  const turn = turnOf(body);
  const delay = 60 + Math.random() * 120;
  // The last word names the request that brought it: another one would say something else.
  if (turn === TURNS) return { content: [{ type: "text", text: `written by request ${count}` }], delay };
  const [name, input] = turn % 2 ? ["post", { text: `post ${turn}` }] : ["read", { n: turn }];
  return { content: [{ type: "tool_use", id: `use_${turn}`, name, input }], stopReason: "tool_use", delay };
};

/** A board that remembers every post, also a second one under the same key. */
async function board() {
  const posts: string[] = [];
  const server = createServer(async (request, response) => {
    const path = (request.url ?? "").slice(1);
    if (request.method === "POST") {
      posts.push(path);
      // Time to be killed between the post and its receipt.
      await sleep(Math.random() * 80);
    } else if (!posts.includes(path)) response.statusCode = 404;
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    posts,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("12 turns and 6 effects, killed at 40 points: no stored turn is asked for again, no key posted twice", async () => {
  await using nats = await testNats();
  await using model = await startModel(script);
  using receiver = await board();
  const w = world(nats, "nats-kv", { ackWait: 1_000, crashLimit: 1_000 });
  await using deps = await wired(w.config);
  const { namespace, generation } = w.config.settings;
  for (let lane = 0; lane < LANES; lane++)
    await deps.bus.ensure({ namespace, agent: "columnist", lane, generation });
  // Two tasks in each lane, so that each kill of the process interrupts four until the last are done.
  const ids = Array.from({ length: LANES }, (_, lane) => {
    const mine = Array.from({ length: 200 }, (_, n) => `t${n}`).filter((id) => laneOf(id, LANES) === lane);
    return mine.slice(0, 2);
  }).flat();
  for (const id of ids)
    await submit(deps, { agent: "columnist", lanes: LANES, id, input: { board: receiver.url } });

  const env = { ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url };
  const start = () => pawl(w, ["run", "columnist", "--json"], env);
  let interrupted = 0;
  let kills = 0;
  while (interrupted < INTERRUPTED && kills++ < MOST_KILLS) {
    const runner = start();
    const before = model.requests.length;
    // About one turn of each task, and then anywhere.
    await until("it asks", async () => model.requests.length >= before + 3, 60_000);
    await sleep(Math.random() * 200);
    for (const id of ids) {
      const task = (await deps.store.get(id))?.task;
      if (task?.state === "running" && task.started) interrupted++;
    }
    await runner.kill("SIGKILL");
  }
  const last = start();
  await allCompleted(deps.store, ids, 120_000);
  await last.kill("SIGTERM");

  expect(interrupted).toBeGreaterThanOrEqual(INTERRUPTED);
  let saved = 0;
  for (const id of ids) {
    const task = (await deps.store.get(id))?.task;
    const entries = (await readJournal(id, () => {}, deps))?.entries ?? [];
    const receipts = entries.filter((entry) => entry.kind === "receipt" && entry.cost);
    expect(receipts, id).toHaveLength(TURNS);
    const asked = model.requests.filter(({ body }) => taskOf(body) === id).map(({ body }) => turnOf(body));
    // Once the next turn was asked for, this one is stored: it never comes again.
    expect(asked, id).toEqual(asked.toSorted((a, b) => a - b));
    expect(new Set(asked).size).toBe(TURNS);
    // A turn in flight at a kill was asked for again, and the journal says so.
    const again = asked.length - TURNS;
    expect(lost(entries).turns, id).toBeGreaterThanOrEqual(again);
    const posts = receiver.posts.filter((path) => path.startsWith(`${id}/`));
    expect([posts.length, new Set(posts).size], id).toEqual([POSTS, POSTS]);
    const final = receipts.at(-1) as { value?: { content: { text: string }[] } };
    expect(task, id).toMatchObject({
      result: { text: final.value?.content[0]?.text },
      spent: { turns: TURNS },
    });
    saved += task?.saved.turns ?? 0;
  }
  // Most executions found turns of the one before them, and paid for none of these.
  expect(saved).toBeGreaterThan(INTERRUPTED);
  // What the crashes cost and what the journal saved is there to be read.
  const [id = ""] = ids;
  const status = pawl(w, ["status", id]);
  await status.exited;
  expect(status.text()).toMatch(/^spent {7}12 turns, \d+ \+ \d+ tokens, \$0\.\d+/m);
  expect(status.text()).toMatch(/^saved {7}\d+ turns, .* by the journal/m);
}, 240_000);
