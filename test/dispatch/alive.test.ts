import { expect, test, vi } from "vitest";
import { job } from "../../functions/dispatch.ts";
import { aliveAt } from "../../shared/dispatch/alive.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { quickSealer } from "../sim/world/sealer.ts";
import { CalmWorld } from "../support/servers/simulated.ts";

vi.mock("pawl:agents", () => ({ agents: [{ name: "a", lanes: 1, schedules: [], dispatchTimeout: 60_000 }] }));

/** One run of the dispatch function with nothing to do, and what it asked of its store, in order. */
async function run(putText: TaskStore["putText"]) {
  const world = new CalmWorld();
  const asked: string[] = [];
  const told: string[] = [];
  const plain = { ...memoryStore(), due: async () => ({ tasks: [], isCut: false }), expire: async () => 0 };
  const store = new Proxy({ ...plain, putText } as TaskStore, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value === "function") asked.push(String(name));
      return value;
    },
  });
  const { settings, process } = world;
  const log: Deps["log"] = (level, event) => void told.push(`${level} ${event}`);
  const meter = { count: () => {}, flush: async () => {} };
  const rest = { settings, runner: "r", meter, sealer: quickSealer, clock: process.clock };
  // It asks NATS through the bus only.
  const nc = undefined as never;
  const deps = { ...rest, nc, store, bus: world.bus(), log };
  return { world, asked, told, done: job.run(deps, new AbortController().signal, {} as never), deps, plain };
}

const NOTHING = { dispatched: { a: 0 }, buried: 0, ticks: 0, expired: 0 };

test("a dispatch that has nothing to do leaves a sign of life, by one write and no read", async () => {
  const texts: string[] = [];
  const { world, asked, done } = await run(async (name, text) => void texts.push(name, text));
  const begun = world.process.clock.now();
  expect(await world.until(done)).toEqual(NOTHING);
  expect(texts).toEqual(["dispatch-alive", String(begun)]);
  expect(asked.filter((name) => name === "putText" || name === "getText")).toEqual(["putText"]);
});

test("a sign that can't be written holds nothing up, and fails nothing", async () => {
  let give: (error: Error) => void = () => {};
  const { world, asked, told, done } = await run(
    () =>
      new Promise((_, reject) => {
        give = reject;
      }),
  );
  const work = ["due", "expire", "getRecord"];
  await world.until(vi.waitFor(() => expect(asked).toEqual(expect.arrayContaining(work))));
  give(new PawlError("store_unavailable", "gone"));
  expect(await world.until(done)).toEqual(NOTHING);
  expect(told).toContain("warn dispatch.unseen");
});

test("where there is no sign, or none that can be read, nobody has seen it", async () => {
  expect(await aliveAt(memoryStore())).toBeUndefined();
  expect(await aliveAt({ getText: async () => "soon" })).toBeUndefined();
  expect(await aliveAt({ getText: async () => "1700000000000" })).toBe(1_700_000_000_000);
});
