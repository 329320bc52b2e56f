import type { Drill } from "../drill.ts";
import type { Stage } from "../stage/stage.ts";

const WORK = 3_000;

/** Runner A is frozen in its work until B does it, and wakes up beside it. */
async function frozenAtWork(stage: Stage, env: Readonly<Record<string, string>> = {}): Promise<void> {
  await stage.submit([{ do: "step", name: "work", ms: WORK }]);
  const a = await stage.runner("A", { env });
  await stage.seen("A is at work", ({ deed }) => deed === "work goes on");
  await a.freeze();
  stage.tell("runner A is frozen in its work");
  await stage.runner("B");
  await stage.seen("B is at work", ({ pid, deed }) => pid !== a.pid && deed === "work");
  a.wake();
  stage.tell("runner B has taken it over, and works; runner A wakes up");
}

export const stale: readonly Drill[] = [
  {
    name: "frozen-runner",
    what: "A runner freezes in its work for longer than its lease, and wakes up while another does it",
    fault: "process frozen",
    about: "no overlap",
    needs: [],
    seconds: 11,
    run: (stage) => frozenAtWork(stage),
  },
  {
    name: "machine-sleeps",
    what: "The same on a machine that sleeps: its monotonic clock stands still, only its wall clock knows",
    fault: "clock moved",
    about: "no overlap",
    needs: [],
    seconds: 11,
    run: (stage) => frozenAtWork(stage, { PAWL_DRILL_CLOCK: "sleeps" }),
  },
  {
    name: "zombie-ack",
    what: "A runner freezes as it writes its completion, and comes to its ack while another has the message",
    fault: "process frozen",
    about: "no overlap",
    needs: ["words"],
    seconds: 12,
    run: async (stage) => {
      await stage.submit([
        { do: "step", name: "before", ms: 0 },
        { do: "linger", most: 2_000, ms: 0 },
      ]);
      const a = await stage.runner("A", {
        env: { PAWL_DRILL_PAUSE_AT: "before:completed", PAWL_DRILL_RESUME: "1" },
      });
      await a.stoppedAt("before:completed");
      await a.freeze();
      stage.tell("runner A is frozen before it writes its completion");
      await stage.runner("B");
      await stage.seen("B has begun", ({ pid, deed }) => pid !== a.pid && deed === "linger");
      a.resume();
      a.wake();
      await a.says(/"task\.handled"/);
      stage.tell("runner A woke up, tried to complete it, and went on");
    },
  },
  {
    name: "zombie-heartbeat",
    what: "A runner freezes while its model thinks, and its next heartbeat is due when another has the message",
    fault: "process frozen",
    about: "no overlap",
    needs: ["words"],
    seconds: 8,
    run: async (stage) => {
      await stage.submit([{ do: "turn", name: "draft" }]);
      stage.model.hold(true);
      const a = await stage.runner("A");
      await stage.seen("A asks its model", ({ kind }) => kind === "turn");
      await a.freeze();
      stage.tell("runner A is frozen while its model thinks");
      await stage.runner("B");
      await stage.seen("B asks", ({ pid, kind }) => pid !== a.pid && kind === "turn");
      a.wake();
      await a.says(/"lease\.lost"/);
      stage.tell("runner A woke up, and found its lease lost");
      stage.model.hold(false);
    },
  },
  {
    name: "slow-handler",
    what: "A handler works for several ack_waits, and another runner waits for its message",
    fault: "slow work",
    about: "nothing lost",
    needs: [],
    seconds: 9,
    run: async (stage) => {
      const { ackWait } = stage.deps.settings;
      await stage.submit([{ do: "step", name: "long", ms: 3 * ackWait }]);
      await stage.runner("A");
      await stage.runner("B");
      stage.tell(`its one step takes ${(3 * ackWait) / 1000} s, three times the ack_wait`);
    },
  },
  {
    name: "deploy-in-the-middle",
    what: "A deploy ends a runner whose code goes on for a while: its successor waits until it can't act any more",
    fault: "told to stop",
    about: "no overlap",
    needs: [],
    env: { PAWL_ACK_WAIT: "6s" },
    seconds: 12,
    run: async (stage) => {
      const id = await stage.submit([
        { do: "linger", most: 60_000, ms: 2_000 },
        { do: "step", name: "after", ms: 0 },
      ]);
      const a = await stage.runner("A");
      await stage.seen("A is at work", ({ deed }) => deed === "linger goes on");
      await stage.runner("B");
      await stage.until("B waits for a message", async () => (await stage.waiting()) > 0);
      await stage.mend(id);
      a.tellToStop();
      stage.tell("runner A is told to stop, and its code goes on for 2 s; runner B is there");
    },
  },
  {
    name: "platform-time-limit",
    what: "A platform ends each invocation before the task is done: the next goes on where it stood",
    fault: "time limit",
    about: "never repeated",
    needs: ["settings"],
    env: { PAWL_TIME_LIMIT: "5s" },
    seconds: 14,
    run: async (stage) => {
      const steps = ["one", "two", "three", "four"].map((name) => ({ do: "step", name, ms: 1_200 }) as const);
      const id = await stage.submit(steps);
      for (let invocation = 1; invocation <= 8; invocation++) {
        const one = await stage.runner(String(invocation));
        await one.exited;
        const { state } = await stage.task(id);
        stage.tell(`invocation ${invocation} is over, and the task is ${state}`);
        if (state === "completed") return;
      }
    },
  },
];
