import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Delivery } from "../../shared/ports/bus.ts";
import { recordBus, TIMED, type Timing, UNTIMED } from "../support/recorded/bus-plan.ts";
import { busAnswer } from "../support/recorded/bus-steps.ts";
import { type Compared, compare } from "../support/recorded/compare.ts";
import { recordStore } from "../support/recorded/store-plan.ts";
import { Answered, storeAnswer } from "../support/recorded/store-steps.ts";
import { onNats, simulated } from "../support/servers/buses.ts";
import { emptyStore, testNats } from "../support/servers/stores.ts";

/** More by hand: TEST_RECORDINGS=200 TEST_SEED=1000 npx vitest run test/contract/recorded.test.ts */
const RECORDINGS = Number(process.env.TEST_RECORDINGS ?? 8);
const FIRST = Number(process.env.TEST_SEED ?? 1);
const AT_ONCE = 8;
const LONG = 180_000 + RECORDINGS * 10_000;
/** What is recorded as before the end of a wait is not compared when it came closer to it than this. */
const CLOSE = 300;

/** A few recordings at a time: they mostly wait. */
async function all(run: (seed: number) => Promise<Compared>): Promise<void> {
  const compared: Compared[] = [];
  const left = Array.from({ length: RECORDINGS }, (_, i) => FIRST + i);
  const work = async () => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) compared.push(await run(seed));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const sum = (field: keyof Compared) => compared.reduce((total, one) => total + one[field], 0);
  if (sum("steps") < sum("of"))
    console.log(`compared ${sum("steps")} of ${sum("of")} steps: this machine is slow`);
  expect(compared).toHaveLength(RECORDINGS);
}

describe("the bus", () => {
  const [real, simulation] = [onNats(), simulated()];
  beforeAll(() => real.start());
  afterAll(() => real.stop());

  const run = async (seed: number, timing: Timing): Promise<Compared> => {
    const settings = { ackWait: timing.wait, duplicateWindow: timing.wait };
    await using imagined = await simulation.open(settings);
    const recorded = await recordBus(imagined, seed, timing);
    await using world = await real.open(settings);
    const deliveries: Delivery[] = [];
    let since = world.now();
    const again = async (one: (typeof recorded)[number]) => {
      const answer = await busAnswer(world, one.step, deliveries, one);
      if (one.step.do === "pass") since = world.now();
      return answer;
    };
    const isOver = () => world.now() - since > timing.wait - CLOSE;
    const looks = ["state", "inspect", "advisories"];
    return await compare(recorded, `the simulated bus with seed ${seed}`, again, { looks, isOver });
  };

  test("a recorded workload is answered the same on both", () => all((seed) => run(seed, UNTIMED)), LONG);

  test(
    "so is one in which ack waits and duplicate windows pass",
    () => all((seed) => run(seed, TIMED)),
    LONG,
  );
});

describe("the store", () => {
  let nats: LocalNats;
  beforeAll(async () => {
    nats = await testNats();
  });
  afterAll(() => nats.stop());

  test(
    "a recorded workload is answered the same by a bucket and the simulated store",
    () =>
      all(async (seed) => {
        await using imagined = await emptyStore(nats, "simulated");
        const recorded = await recordStore(imagined.store, seed, Date.now());
        await using real = await emptyStore(nats, "nats-kv");
        const known = new Answered();
        const again = ({ step }: (typeof recorded)[number]) => storeAnswer(real.store, step, known);
        return await compare(recorded, `the simulated store with seed ${seed}`, again);
      }),
    LONG,
  );
});
