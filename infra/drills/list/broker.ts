import { setTimeout as sleep } from "node:timers/promises";
import { queueOf } from "../../../shared/dispatch/dispatch.ts";
import { streamName } from "../../../shared/task/names.ts";
import type { Drill } from "../drill.ts";
import { AGENT, type Stage } from "../stage/stage.ts";

/** Longer than a lease: whoever worked has to let go. */
const DOWN = 2_500;

/** The queue and the documents of a drill. */
const streamsOf = ({ deps }: Stage) => [
  streamName(queueOf(deps, { agent: AGENT, lane: 0 })),
  `KV_${deps.settings.namespace}-tasks`,
];

const ACTS = [
  { do: "turn", name: "draft" },
  { do: "step", name: "work", ms: 1_500 },
  { do: "effect", name: "post", how: "keyed" },
] as const;

export const broker: readonly Drill[] = [
  {
    name: "broker-restart",
    what: "The server is killed in the middle of a task, and is back when its lease has ended",
    fault: "broker killed",
    about: "never repeated",
    needs: ["server"],
    seconds: 12,
    run: async (stage) => {
      await stage.submit(ACTS);
      await stage.runner("A");
      await stage.runner("B");
      await stage.seen("it is at work", ({ deed }) => deed === "work goes on");
      await stage.nats.halt("SIGKILL");
      stage.tell("the server is killed with SIGKILL");
      await sleep(DOWN);
      await stage.nats.restart();
      stage.tell("the server is back");
    },
  },
  {
    name: "broker-leader-killed",
    what: "Three servers, and the one that leads the task's streams is killed in the middle of it",
    fault: "cluster leader killed",
    about: "never repeated",
    needs: ["cluster"],
    seconds: 40,
    run: async (stage) => {
      const { cluster, alone } = stage;
      const streams = streamsOf(stage);
      await cluster.lead(alone, streams);
      await stage.submit(ACTS);
      await stage.runner("A");
      await stage.runner("B");
      await stage.seen("it is at work", ({ deed }) => deed === "work goes on");
      await alone.halt("SIGKILL");
      stage.tell(`${alone.name} is killed: it led the queue and the documents`);
      await stage.settled();
      await alone.restart();
      await cluster.heal(streams);
    },
  },
  {
    name: "broker-leader-cut-off",
    what: "Three servers, and the one that leads is cut off from the others, with a runner beside it",
    fault: "cluster leader cut off",
    about: "no overlap",
    needs: ["cluster"],
    seconds: 50,
    run: async (stage) => {
      const { cluster, alone } = stage;
      const streams = streamsOf(stage);
      await cluster.lead(alone, streams);
      const id = await stage.submit([{ do: "linger", most: 60_000, ms: 0 }]);
      const a = await stage.runner("A", { env: { NATS_URL: alone.url } });
      await stage.seen("A is at work", ({ deed }) => deed === "linger goes on");
      await stage.mend(id);
      await stage.runner("B");
      cluster.isolate(alone, "silent");
      stage.tell(`${alone.name} is cut off from its peers; ${a.name} still reaches it`);
      await stage.settled();
      await cluster.heal(streams);
    },
  },
];
