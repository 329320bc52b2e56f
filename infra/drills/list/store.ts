import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { timing } from "../../../shared/settings/settings.ts";
import type { Drill } from "../drill.ts";
import { type CuttingProxy, cuttingProxy } from "../faults/proxy.ts";
import type { Stage } from "../stage/stage.ts";

/** A way to the store that can be cut, for one runner. */
async function ownWay(stage: Stage): Promise<{ proxy: CuttingProxy; env: Record<string, string> }> {
  const proxy = await cuttingProxy(stage.config.emulatorHost as string);
  return { proxy, env: { FIRESTORE_EMULATOR_HOST: proxy.host } };
}

/** Until it is so, or not any more for as long as an outage lasts. */
async function meanwhile(stage: Stage, id: string, ms: number): Promise<void> {
  const until = Date.now() + ms;
  while (Date.now() < until && (await stage.task(id)).state !== "completed") await sleep(50);
}

const OUTAGE = 12_000;

export const store: readonly Drill[] = [
  {
    name: "store-away-before-claim",
    what: "The store is away when a message comes: it is put back, nothing runs blind, and it is done once the store is back",
    fault: "store cut off",
    about: "nothing lost",
    needs: ["firestore", "proxy"],
    seconds: 8,
    run: async (stage) => {
      const { proxy, env } = await ownWay(stage);
      await using _ = proxy;
      await stage.submit([{ do: "effect", name: "post", how: "blind" }]);
      proxy.cut(true);
      const a = await stage.runner("A", { env });
      await a.says(/"as":"store-away"/);
      stage.tell("runner A got the message, could not reach its store for a lease, and put it back");
      proxy.cut(false);
      await stage.settled();
    },
  },
  {
    name: "store-away-in-the-middle",
    what: "A runner loses its store in the middle of its work: it stops when its lease ends, and another goes on",
    fault: "store cut off",
    about: "no overlap",
    needs: ["firestore", "proxy"],
    seconds: 14,
    run: async (stage) => {
      const { proxy, env } = await ownWay(stage);
      await using _ = proxy;
      const id = await stage.submit([
        { do: "step", name: "first", ms: 0 },
        { do: "step", name: "work", ms: 4_000 },
      ]);
      const a = await stage.runner("A", { env });
      await stage.seen("A is at work", ({ deed }) => deed === "work goes on");
      proxy.stall(true);
      const { leaseTime } = timing(stage.deps.settings);
      const why = "its lease had ended: it had not reached its store since";
      stage.claim({ silent: a.pid, why, at: Date.now() + leaseTime + 500 });
      stage.tell("no byte reaches runner A's store any more, nor comes back");
      await stage.runner("B");
      await meanwhile(stage, id, OUTAGE);
      proxy.stall(false);
    },
  },
  {
    name: "store-away-at-completion",
    what: "The store is away when the completion is written: no ack without it, and another completes it from the journal",
    fault: "store cut off",
    about: "nothing lost",
    needs: ["firestore", "proxy", "words"],
    seconds: 10,
    run: async (stage) => {
      const { proxy, env } = await ownWay(stage);
      await using _ = proxy;
      const id = await stage.submit([{ do: "effect", name: "post", how: "blind" }]);
      const at = { PAWL_DRILL_PAUSE_AT: "before:completed", PAWL_DRILL_RESUME: "1" };
      const a = await stage.runner("A", { env: { ...env, ...at } });
      await a.stoppedAt("before:completed");
      proxy.cut(true);
      a.resume();
      stage.tell("the effect is done; the store is away as runner A writes the completion");
      await stage.runner("B");
      await meanwhile(stage, id, OUTAGE);
      proxy.cut(false);
    },
  },
  {
    name: "runner-without-its-store",
    what: "One runner can't reach its store and has the message: the lane belongs to the one that can",
    fault: "store cut off",
    about: "nothing lost",
    needs: ["firestore", "proxy"],
    seconds: 8,
    run: async (stage) => {
      const { proxy, env } = await ownWay(stage);
      await using _ = proxy;
      await stage.submit([{ do: "effect", name: "post", how: "blind" }]);
      proxy.cut(true);
      await stage.runner("A", { env });
      await stage.until("A has the message", async () => (await stage.held()) === 1);
      stage.tell("runner A has the message, and no store");
      await stage.runner("B");
      // It stays cut off until the task is over.
      await stage.settled();
    },
  },
  {
    name: "store-full",
    what: "The server's storage is full when a completion is written: no ack without it, and all goes on once there is room",
    fault: "store full",
    about: "nothing lost",
    needs: ["server", "words"],
    storage: "4MB",
    env: { PAWL_STORE_BYTES: "-1", PAWL_QUEUE_BYTES: "-1" },
    seconds: 12,
    run: async (stage) => {
      const { deps } = stage;
      await stage.submit([{ do: "effect", name: "post", how: "blind" }]);
      const at = { PAWL_DRILL_PAUSE_AT: "before:completed", PAWL_DRILL_RESUME: "1" };
      const a = await stage.runner("A", { env: at });
      await a.stoppedAt("before:completed");
      const jsm = await jetstreamManager(deps.nc, { checkAPI: false });
      await jsm.streams.add({ name: "FILLER", subjects: ["filler"] });
      await stage.until("it is full", async () => {
        const answer = await deps.nc.request("filler", "x".repeat(50_000), { timeout: 2_000 });
        return answer.string().includes("error");
      });
      a.resume();
      stage.tell("the effect is done; the server's storage is full as runner A writes the completion");
      await stage.runner("B");
      await sleep(timing(deps.settings).leaseTime);
      await stage.makeRoom();
      stage.tell("there is room again");
    },
  },
];
