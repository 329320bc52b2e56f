import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { redrive } from "../../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import type { HeldClaim } from "../../../shared/ports/bus.ts";
import { streamName } from "../../../shared/task/names.ts";
import { AGENT, agentOf, bench } from "../../support/bench.ts";
import { plantedBooks } from "../../support/faults/planted-books.ts";
import { expectFound, type Kind, MINUTE, type Stage, stage } from "../../support/faults/planting.ts";
import { ahead, namesOf, reconciled } from "../../support/reconciling.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const DAY = 1_440 * MINUTE;
const both: readonly { kind: Kind; here: boolean }[] = [
  { kind: "nats-kv", here: true },
  { kind: "firestore-rest", here: hasEmulator },
];

const deleteMessage = async ({ b, stream }: Stage, seq: number) =>
  void (await (await jetstreamManager(b.deps.nc)).streams.deleteMessage(stream, seq));

describe.each(both)("in $kind", ({ kind, here }) => {
  const planted = plantedBooks.filter(({ store = kind }) => store === kind);
  test.skipIf(!here).each(planted)("$name is found and named, and nothing else is", async (fault) => {
    await using s = await stage(nats, kind);
    await expectFound(s, [["x", fault]]);
  });

  test.skipIf(!here)(
    "a clock a day ahead is named, dispatches nothing, and hides nothing from the next report",
    async () => {
      await using s = await stage(nats, kind);
      await s.submit("tonight", "echo", { at: Date.now() + DAY / 2 });
      const { clock } = s.b.deps;
      Object.assign(s.b.deps, { clock: { ...clock, now: () => Date.now() + DAY } });
      const off = await reconciled(s.b.deps, { repair: true });
      expect(namesOf(off)).toEqual(["clock_off clocks"]);
      expect(off.report.repairs).toEqual({});
      expect(await s.b.task("tonight")).toMatchObject({ state: "scheduled", dispatches: 0 });
      await dispatchDue(s.b.deps, AGENT);
      expect((await s.b.task("tonight")).dispatches).toBe(0);

      Object.assign(s.b.deps, { clock });
      await s.submit("lost");
      await deleteMessage(s, 1);
      ahead(s.b, 10 * MINUTE);
      expect(namesOf(await reconciled(s.b.deps)).sort()).toEqual([
        "orphan lost",
        `unexplained ${s.stream}#1`,
      ]);
      expect((await s.b.task("tonight")).state).toBe("scheduled");
    },
  );
});

test("a dead letter that was redriven and lost its message is no task that was put back", async () => {
  await using s = await stage(nats, "nats-kv");
  await s.submit("x", "fail");
  await s.drain();
  ahead(s.b, 20 * MINUTE);
  expect(namesOf(await reconciled(s.b.deps))).toEqual([]);
  await redrive(s.b.deps, "x");
  await deleteMessage(s, 2);
  ahead(s.b, 60 * MINUTE);
  expect(namesOf(await reconciled(s.b.deps)).sort()).toEqual(["orphan x", `unexplained ${s.stream}#2`]);
  await dispatchDue(s.b.deps, AGENT);
  await s.drain();
  expect(s.runs.get("x")).toBe(2);
});

test("a holder that answers at the second look, a lease later, is not called dead", async () => {
  const echo = agentOf(() => "done");
  await using b = await bench(nats, "nats-kv", echo, { ackWait: 2_000 });
  await b.submit({}, { id: "x" });
  const found = await b.deps.store.get("x");
  const queue = streamName(b.queue);
  const held = { queue, seq: 1, token: "x-1", runner: "r", via: "s", started: true, fresh: false, fence: 1 };
  const running = { ...found?.task, ...held, state: "running", stamp: "held" } as never;
  await b.deps.store.replace(running, found?.revision ?? "");
  ahead(b, 10 * MINUTE);
  const { bus } = b.deps;
  const asked: boolean[] = [];
  let stop = () => {};
  // Its process is blocked when it is asked first, and listens again from then on.
  const isHeld = async (claim: HeldClaim) => {
    const answer = await bus.isHeld(claim);
    if (asked.push(answer) === 1) stop = bus.answerFor(claim, () => true);
    return answer;
  };
  Object.assign(b.deps, { bus: { ...bus, isHeld } });
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  expect(asked).toEqual([false, true]);
  stop();
  expect(namesOf(await reconciled(b.deps))).toEqual(["unheld x"]);
});
