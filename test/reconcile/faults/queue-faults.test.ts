import { nanos } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { cancel } from "../../../shared/dispatch/operate.ts";
import { pauseAgent, resumeAgent } from "../../../shared/pause/pause.ts";
import { advisoriesName, consumerName, laneOf } from "../../../shared/task/names.ts";
import { apply } from "../../../shared/task/transitions.ts";
import { AGENT, agentOf, type Bench } from "../../support/bench.ts";
import {
  begun,
  deleteStream,
  expected,
  ids,
  jsm,
  stream,
  submitAll,
} from "../../support/faults/queue-faults.ts";
import { ahead, namesOf, reconciled } from "../../support/reconciling.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTES = 60_000;
const DAYS = 86_400_000;
const LANES = { [AGENT]: 1 };
const waits = agentOf(({ waitFor }) => waitFor("word"));

const setGeneration = (b: Bench, generation: number) =>
  Object.assign(b.deps, { settings: { ...b.deps.settings, generation } });
interface Fault {
  readonly name: string;
  plant(b: Bench): Promise<void>;
  /** Agents that the deployment has, with their lanes. */
  readonly lanes?: Readonly<Record<string, number>>;
  /** Kinds and what they are about; {s} is the stream, {S} the namespace as streams have it. */
  readonly found: readonly string[];
  /** What the first of them says. */
  readonly says?: RegExp;
  /** After it the next week's report finds nothing. */
  mend?(b: Bench): Promise<void>;
}

/** Before each, five tasks are completed and explained. */
const faults: readonly Fault[] = [
  {
    name: "a stream deleted with 20 messages that came after the last report",
    plant: async (b) => {
      await submitAll(b, 20);
      await deleteStream(b);
    },
    found: ["stream_gone {s}", ...ids(20).map((id) => `orphan ${id}`)],
    says: /^20 tasks are dispatched or running/,
    mend: async (b) => {
      setGeneration(b, 2);
      await b.deps.bus.ensure({ ...b.queue, generation: 2 });
      await reconciled(b.deps, { repair: true, lanes: LANES });
      await b.drain();
    },
  },
  {
    name: "a stream deleted with messages that the last report saw",
    plant: async (b) => {
      await submitAll(b, 3);
      await reconciled(b.deps, { lanes: LANES });
      await deleteStream(b);
    },
    found: ["stream_gone {s}", ...ids(3).map((id) => `orphan ${id}`)],
    says: /^3 of its sequences were open and are settled by nobody: 6-8; 3 tasks are/,
  },
  {
    name: "a stream drained and retired",
    plant: async (b) => {
      await submitAll(b, 3);
      await reconciled(b.deps, { lanes: LANES });
      await b.drain();
      await deleteStream(b);
    },
    found: [],
    mend: async (b) => {
      await b.deps.bus.ensure(b.queue);
      await submitAll(b, 5);
      await b.submit({}, { id: "other" });
      await b.drain();
    },
  },
  {
    name: "an agent and its stream deleted while a task waits",
    plant: async (b) => {
      await b.submit({}, { id: "w" });
      await b.drain(waits);
      await deleteStream(b);
    },
    lanes: {},
    found: [`agent_gone ${AGENT}`],
    says: /^this deployment has no such agent; its tasks: 1 waiting$/,
  },
  {
    name: "an agent's only stream deleted while a task waits",
    plant: async (b) => {
      await b.submit({}, { id: "w" });
      await b.drain(waits);
      await deleteStream(b);
    },
    found: [`agent_gone ${AGENT}`],
    says: /^it has no queue; its tasks: 1 waiting$/,
    mend: async (b) => void (await b.deps.bus.ensure(b.queue)),
  },
  {
    name: "an agent gone with queued and waiting tasks",
    plant: async (b) => {
      await b.submit({}, { id: "w" });
      await b.drain(waits);
      await submitAll(b, 2);
    },
    lanes: {},
    found: [`agent_gone ${AGENT}`],
    says: /2 dispatched, 1 waiting|1 waiting, 2 dispatched/,
  },
  {
    name: "a lane taken out with messages in it",
    plant: async (b) => {
      await b.deps.bus.ensure({ ...b.queue, lane: 1 });
      const inLane1 = ids(20).filter((id) => laneOf(id, 2) === 1);
      for (const id of inLane1.slice(0, 2)) await b.submit({}, { id, lanes: 2 });
    },
    found: [`lane_left {S}_${AGENT}_1_g1`],
    says: /^2 messages are left, and tested has 1 lanes$/,
    mend: async (b) => void (await b.drain()),
  },
  {
    name: "a generation lowered by mistake",
    plant: async (b) => {
      setGeneration(b, 2);
      await b.deps.bus.ensure({ ...b.queue, generation: 2 });
      await submitAll(b, 3);
      setGeneration(b, 1);
    },
    found: [`generation_lowered {S}_${AGENT}_0_g2`],
    says: /^3 messages are left in generation 2, and PAWL_GENERATION is 1$/,
    mend: async (b) => {
      setGeneration(b, 2);
      await b.drain();
    },
  },
  {
    name: "an empty queue of a newer generation",
    plant: async (b) => void (await b.deps.bus.ensure({ ...b.queue, generation: 2 })),
    found: [`generation_ahead {S}_${AGENT}_0_g2`],
  },
  {
    name: "a consumer paused for 30 days",
    plant: async (b) => {
      const until = new Date(Date.now() + 30 * DAYS);
      await (await jsm(b)).consumers.pause(stream(b), consumerName(b.queue), until);
    },
    found: ["consumer_paused {s}"],
    mend: async (b) => void (await (await jsm(b)).consumers.resume(stream(b), consumerName(b.queue))),
  },
  {
    name: "a consumer deleted, with messages in its stream",
    plant: async (b) => {
      await submitAll(b, 2);
      await (await jsm(b)).consumers.delete(stream(b), consumerName(b.queue));
    },
    found: ["consumer_gone {s}"],
  },
  {
    name: "the advisories stream deleted",
    plant: (b) => deleteStream(b, advisoriesName(b.queue)),
    found: ["advisories_gone {S}_advisories"],
    says: /^it does not exist$/,
    mend: async (b) => void (await b.deps.bus.advisories(1)),
  },
  {
    name: "the advisories stream deleted and made anew",
    plant: async (b) => {
      await deleteStream(b, advisoriesName(b.queue));
      await b.deps.bus.advisories(1);
    },
    found: ["advisories_gone {S}_advisories"],
    says: /^made anew at /,
    mend: async () => {},
  },
  {
    name: "max_ack_pending 100",
    plant: async (b) => {
      await (await jsm(b)).consumers.update(stream(b), consumerName(b.queue), { max_ack_pending: 100 });
    },
    found: ["queue_unsafe {s} max_ack_pending"],
    says: /^max_ack_pending is 100 and should be 1\. Several tasks of a lane run at once/,
    mend: async (b) => void (await b.deps.bus.ensure(b.queue)),
  },
  {
    name: "max_age 1h with discard old and max_msgs 3",
    plant: async (b) => {
      const limits = { max_age: nanos(60 * MINUTES), discard: "old", max_msgs: 3 } as const;
      await (await jsm(b)).streams.update(stream(b), { ...limits, discard_new_per_subject: false });
    },
    found: ["discard", "discard_new_per_subject", "max_age", "max_msgs"].map((f) => `queue_unsafe {s} ${f}`),
    says: /^discard is "old" and should be "new"\. When the queue is full, the oldest waiting tasks/,
    mend: async (b) => void (await b.deps.bus.ensure(b.queue)),
  },
  {
    name: "fields that Pawl leaves at the server's default",
    plant: async (b) => {
      const republish = { src: ">", dest: `copies.${b.queue.namespace}.>` };
      await (await jsm(b)).streams.update(stream(b), { republish, deny_delete: true, allow_msg_ttl: true });
      await (await jsm(b)).consumers.update(stream(b), consumerName(b.queue), { headers_only: true });
    },
    found: [
      "queue_unsafe {s} headers_only",
      "queue_differs {s} allow_msg_ttl",
      "queue_differs {s} deny_delete",
      "queue_differs {s} republish",
    ],
  },
  {
    name: "more patience than is asked for",
    plant: async (b) => {
      const consumer = { ack_wait: nanos(10 * MINUTES), max_deliver: -1 };
      await (await jsm(b)).consumers.update(stream(b), consumerName(b.queue), consumer);
      await (await jsm(b)).streams.update(stream(b), { duplicate_window: nanos(MINUTES), max_msgs: 9 });
    },
    found: ["ack_wait", "duplicate_window", "max_deliver", "max_msgs"].map((f) => `queue_differs {s} ${f}`),
    mend: async (b) => void (await b.deps.bus.ensure(b.queue)),
  },
  {
    name: "an agent that was paused with a task whose holder died: it is no silence of a runner",
    plant: async (b) => {
      await b.submit({}, { id: "t" });
      const seen = await b.deps.store.get("t");
      const holder = { queue: stream(b), seq: 6, token: "dead", runner: "dead", via: "dead", lease: 1_000 };
      const mark = { now: Date.now(), stamp: "dead", by: "dead" };
      if (seen)
        await b.deps.store.replace(apply(seen.task, { type: "claim", ...holder }, mark), seen.revision);
      await pauseAgent({ ...b.deps, actor: { name: "jo", via: "cli" } }, AGENT, "the board is down");
    },
    found: [`agent_paused ${AGENT}`],
    says: /^since \S+ by jo via cli: the board is down; 1 tasks are not over$/,
    mend: async (b) => {
      await resumeAgent(b.deps, AGENT);
      await cancel(b.deps, "t");
      await b.drain();
    },
  },
  {
    name: "two deployments with different stores",
    plant: async (b) => {
      await (await jsm(b)).streams.update(stream(b), { metadata: { "pawl-store": "firestore:other:pawl" } });
    },
    found: ["stores_differ {s} pawl-store"],
    says: /^pawl-store is "firestore:other:pawl" and should be "nats-kv:/,
  },
  {
    name: "a stream of an earlier version, which names no store",
    plant: async (b) => void (await (await jsm(b)).streams.update(stream(b), { metadata: {} })),
    found: [],
  },
];

describe("faults planted in queues", () => {
  test.each(faults)("$name", async ({ plant, lanes = LANES, found, says, mend }) => {
    await using b = await begun(nats);
    expect(namesOf(await reconciled(b.deps, { lanes: LANES }))).toEqual([]);
    await plant(b);
    // Long enough for what is only under way to be over.
    ahead(b, 10 * MINUTES);
    const done = await reconciled(b.deps, { lanes });
    expect(namesOf(done).sort()).toEqual(expected(b, found));
    const { named } = done.report.findings;
    if (says) expect(named[0]?.detail).toMatch(says);
    if (!mend) return;
    await mend(b);
    // Another week's, which sums up none of the earlier ones.
    ahead(b, 30 * DAYS);
    expect(namesOf(await reconciled(b.deps, { lanes }))).toEqual([]);
  });
});
