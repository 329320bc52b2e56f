import { nanos } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { QueueInfo } from "../../../shared/ports/bus.ts";
import { advisoriesName } from "../../../shared/task/names.ts";
import { AGENT, type Bench } from "../../support/bench.ts";
import { begun, deleteStream, expected, jsm, stream, submitAll } from "../../support/faults/queue-faults.ts";
import { ahead, namesOf, reconciled } from "../../support/reconciling.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTES = 60_000;
const DAYS = 86_400_000;

describe("what a report says of queues", () => {
  test("the first one finds what went too", async () => {
    await using b = await begun(nats);
    await submitAll(b, 2);
    await deleteStream(b);
    await deleteStream(b, advisoriesName(b.queue));
    await b.deps.bus.ensure({ ...b.queue, agent: "other" }, "create");
    ahead(b, 10 * MINUTES);
    const done = await reconciled(b.deps);
    expect(namesOf(done).sort()).toEqual(
      expected(b, ["stream_gone {s}", "advisories_gone {S}_advisories", "orphan q00", "orphan q01"]),
    );
  });

  test("what was open in a deleted stream is not explained, and the figures add up", async () => {
    await using b = await begun(nats);
    await submitAll(b, 2);
    await reconciled(b.deps);
    await deleteStream(b);
    const { report, listed } = await reconciled(b.deps);
    expect(listed.verdict).toMatch(/^2 of 7 sequences are NOT explained; .*Broken: .*stream gone, 1 stream/);
    expect(report.agents[AGENT]?.classes).toMatchObject({ completed: 5, unexplained: 2, queued: 0 });
    // Named once: the next report has nothing more to say of them.
    ahead(b, 30 * DAYS);
    const { named } = (await reconciled(b.deps)).report.findings;
    expect(named.find(({ kind }) => kind === "stream_gone")?.detail).toMatch(/^2 tasks/);
  });

  test("the settings on the report have every field that differs", async () => {
    await using b = await begun(nats);
    await (await jsm(b)).streams.update(stream(b), { max_age: nanos(60 * MINUTES) });
    const { settings } = (await reconciled(b.deps)).report;
    expect(settings).toContainEqual({ what: `max_age of ${stream(b)}`, is: "1h", should: "0", ok: false });
    expect(settings).toContainEqual({ what: "ack_wait", is: "30s", should: "30s", ok: true });
  });
});

describe("stranded messages", () => {
  /** The stream's answer is `more` messages ahead of its consumer's in the first looks. */
  function outOfStep({ deps }: Bench, looks: number, more = 1) {
    const { inspect } = deps.bus;
    let asked = 0;
    const answer = async (queue: Bench["queue"]): Promise<QueueInfo> => {
      const info = await inspect(queue);
      return asked++ < looks ? { ...info, messages: info.messages + more } : info;
    };
    Object.assign(deps, { bus: { ...deps.bus, inspect: answer } });
  }

  test("two answers of different moments are none", async () => {
    await using b = await begun(nats);
    outOfStep(b, 3);
    expect(namesOf(await reconciled(b.deps))).toEqual([]);
  });

  test("what stays so is named", async () => {
    await using b = await begun(nats);
    outOfStep(b, Infinity);
    expect(namesOf(await reconciled(b.deps))).toEqual([`stranded ${stream(b)}`]);
  });
});

test("the server's clock comes with what it says of a queue", async () => {
  await using b = await begun(nats);
  const before = Date.now();
  const { now } = await b.deps.bus.inspect(b.queue);
  expect(Math.abs(now - before)).toBeLessThan(60_000);
});
