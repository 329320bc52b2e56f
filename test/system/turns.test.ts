import { expect, test } from "vitest";
import { type Board, startBoard } from "../../infra/drills/outside/board.ts";
import { type LocalModel, type Script, startModel } from "../../infra/local/model.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { lost } from "../../shared/journal/budget.ts";
import type { Cost } from "../../shared/journal/cost.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import type { Task } from "../../shared/task/document.ts";
import { dollars } from "../../shared/values/dollars.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import { calm, observer } from "../support/observer.ts";
import { pawl, type Runner } from "../support/servers/runners.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { allCompleted, until } from "../support/time/until.ts";

const TURNS = 12;
const POSTS = 6;
const KILLS = 20;
/** A runner's name ends in its process's number. */
const pidOf = (runner: string) => runner.split("-").at(-1) ?? "";
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Where a conversation is: the turn that is asked for now, from 1. */
const turnOf = (body: JsonObject) => ((body.messages as JsonObject[]).length - 1) / 2 + 1;
const taskOf = (body: JsonObject) => (body.messages as { content: string }[])[0]?.content as string;

const script: Script = (body, count) => {
  const turn = turnOf(body);
  const delay = 100 + Math.random() * 200;
  // The last word names the request that brought it: another one would say something else.
  if (turn === TURNS) return { content: [{ type: "text", text: `written by request ${count}` }], delay };
  const [name, input] = turn % 2 ? ["post", { text: `post ${turn}` }] : ["read", { n: turn }];
  return { content: [{ type: "tool_use", id: `use_${turn}`, name, input }], stopReason: "tool_use", delay };
};

interface Outside {
  readonly nats: LocalNats;
  readonly model: LocalModel;
  readonly receiver: Board;
}

/** Tasks of this letter, one after the other, and their runners killed so many times. Returns what came of it, in all. */
async function killed({ nats, model, receiver }: Outside, letter: string, times: number) {
  const w = world(nats, "nats-kv", { ackWait: 1_000, crashLimit: 1_000 });
  await using deps = await observer(w);
  const { namespace, generation } = w.config.settings;
  await deps.bus.ensure({ namespace, agent: "columnist", lane: 0, generation });
  const ids: string[] = [];
  const submitNext = async () => {
    const id = `${letter}${ids.length + 1}`;
    ids.push(id);
    await submit(deps, { agent: "columnist", lanes: 1, id, input: { board: receiver.url } });
  };
  /** The task under way. If the last one is done before all kills are, there is another. */
  const current = async () => {
    const task = (await deps.store.get(ids.at(-1) as string))?.task;
    if (task?.state === "completed") await submitNext();
    return task;
  };

  const env = { ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url };
  const runners = new Map<string, Runner>();
  // The next one is up before the last one dies: it waits at the queue, and takes over.
  const start = () => {
    const runner = pawl(w, ["run", "columnist", "--json"], env);
    runners.set(String(runner.pid), runner);
  };
  await submitNext();
  start();
  start();
  const states = new Set<string>();
  const requests = () => model.requests.filter(({ body }) => taskOf(body).startsWith(letter));
  const acts = () => requests().length + receiver.posts.filter(({ path }) => path.startsWith(letter)).length;
  for (let kills = 0; kills < times; ) {
    const holder = await until("an execution has begun", async () => {
      const task = await current();
      return task?.state === "running" && task.started && runners.has(pidOf(task.runner)) && task.runner;
    });
    const before = acts();
    await until("it asks or posts", async () => acts() > before || (await current())?.state !== "running");
    await sleep(Math.random() * 400);
    await runners.get(pidOf(holder))?.kill("SIGKILL");
    runners.delete(pidOf(holder));
    start();
    const task = (await deps.store.get(ids.at(-1) as string))?.task;
    // It may have been done a moment before.
    if (task?.state !== "running" || task.runner !== holder) continue;
    kills++;
    states.add(`${requests().at(-1)?.done ? "after" : "in"} a turn`);
  }
  await allCompleted(deps.store, ids, 300_000);
  for (const runner of runners.values()) await runner.kill("SIGTERM");

  const sum = { states: [...states], tasks: ids.length, executions: 0, respent: 0, saved: 0 };
  for (const id of ids) {
    const task = (await deps.store.get(id))?.task;
    const entries = (await readJournal(deps, id, () => {}))?.entries ?? [];
    const receipts = entries.filter((entry) => entry.kind === "receipt" && entry.cost);
    expect(receipts, id).toHaveLength(TURNS);
    const asked = requests()
      .filter(({ body }) => taskOf(body) === id)
      .map(({ body }) => turnOf(body));
    // Once the next turn was asked for, this one is stored: it never comes again.
    expect(asked, id).toEqual(asked.toSorted((a, b) => a - b));
    expect(new Set(asked).size).toBe(TURNS);
    // A turn in flight at a kill was asked for again, and the journal says so.
    const again = asked.length - TURNS;
    const wasLost = lost(entries);
    expect(wasLost.turns, id).toBeGreaterThanOrEqual(again);
    sum.respent += wasLost.turns;
    const posts = receiver.posts.map(({ path }) => path).filter((path) => path.startsWith(`${id}/`));
    expect([posts.length, new Set(posts).size], id).toEqual([POSTS, POSTS]);
    const final = receipts.at(-1) as { value?: { content: { text: string }[] } };
    expect(task, id).toMatchObject({
      result: { text: final.value?.content[0]?.text },
      spent: { turns: TURNS },
    });
    sum.executions += task?.executions ?? 0;
    // What the crashes cost and what the journal saved is there to be read, in tokens and dollars.
    const status = pawl(calm(w), ["status", id]);
    expect(await status.exited, status.text()).toBe(0);
    const line = (name: string, cost: Cost) =>
      `${name.padEnd(11)} ${cost.turns} turns, ${cost.inputTokens} + ${cost.outputTokens} tokens, ${dollars(cost.usd)}`;
    const { spent, saved } = task as Task;
    sum.saved += saved.turns;
    const costs = Object.entries({ spent, "re-spent": wasLost, saved });
    // A task that no kill hit after its first stored turn has nothing saved, and status no line about it.
    for (const [name, cost] of costs.filter(([, { turns }]) => turns > 0))
      expect(status.text()).toContain(line(name, cost));
    for (const [name] of costs.filter(([, { turns }]) => turns === 0))
      expect(status.text()).not.toMatch(new RegExp(`^${name} `, "m"));
  }
  return sum;
}

test("12 turns and 6 effects, killed at 20 points: no stored turn is asked for again, no key posted twice", async () => {
  await using nats = await testNats();
  await using model = await startModel(script);
  await using receiver = await startBoard();
  // Most of the time they wait for a lease to end: two at once.
  const halves = ["a", "b"].map((letter) => killed({ nats, model, receiver }, letter, KILLS / 2));
  const all = await Promise.all(halves);
  const total = (name: "tasks" | "executions" | "respent" | "saved") =>
    all.reduce((sum, one) => sum + one[name], 0);
  // Every kill cut an execution off, in the middle of the model's answer or after it: some of it is asked for again, and
  // most is not. On a busy machine a lease may lapse without a kill.
  expect([...new Set(all.flatMap(({ states }) => states))].sort()).toEqual(["after a turn", "in a turn"]);
  expect(total("executions")).toBeGreaterThanOrEqual(KILLS + total("tasks"));
  expect(total("respent")).toBeGreaterThan(0);
  expect(total("saved")).toBeGreaterThan(0);
}, 600_000);
