import { resolve } from "../../../shared/audit/operations.ts";
import type { Drill } from "../drill.ts";
import { comesTo, person } from "../stage/person.ts";

export const crash: readonly Drill[] = [
  {
    name: "crash-before-ack",
    what: "A runner has done its task, recorded it, and is killed before the ack: the message comes again",
    fault: "process killed",
    about: "never repeated",
    needs: [],
    seconds: 6,
    run: async (stage) => {
      const id = await stage.submit([
        { do: "turn", name: "draft" },
        { do: "effect", name: "post", how: "blind" },
      ]);
      const a = await stage.runner("A", { env: { PAWL_DRILL_PAUSE_AT: "before:ack" } });
      await a.stoppedAt("before:ack");
      stage.claim({ over: id, why: "its runner had come to the ack" });
      await a.kill();
      stage.tell("runner A has done it, and is killed before its ack");
      await stage.runner("B");
    },
  },
  {
    name: "crash-in-the-middle",
    what: "A runner is killed in its second step: another goes on after the first, and after the turn that was paid",
    fault: "process killed",
    about: "never repeated",
    needs: [],
    seconds: 9,
    run: async (stage) => {
      await stage.submit([
        { do: "step", name: "first", ms: 0 },
        { do: "turn", name: "draft" },
        { do: "step", name: "second", ms: 1_500 },
      ]);
      const a = await stage.runner("A");
      await stage.seen("the second step has begun", ({ deed }) => deed === "second");
      await a.kill();
      stage.tell("runner A is killed in its second step");
      await stage.runner("B");
    },
  },
  {
    name: "crash-between-effect-and-receipt",
    what: "An effect has arrived, and its runner is killed before it hears so: a person is asked, nobody tries again",
    fault: "process killed",
    about: "never repeated",
    needs: [],
    seconds: 8,
    run: async (stage) => {
      const id = await stage.submit([
        { do: "effect", name: "post", how: "blind" },
        { do: "step", name: "after", ms: 0 },
      ]);
      stage.board.hold(true);
      const a = await stage.runner("A");
      await stage.seen("the effect has arrived", ({ kind }) => kind === "post");
      await a.kill();
      stage.board.hold(false);
      stage.tell("the effect has arrived; runner A is killed before the answer");
      await stage.runner("B");
      if ((await comesTo(stage, id, "in_doubt")) !== "in_doubt") return;
      stage.tell("the task is in doubt; a person looks at the receiver, and says that it happened");
      await resolve(person(stage), id, { happened: true, receipt: { status: 200, by: "a person" } });
    },
  },
  {
    name: "crash-loop",
    what: "A task kills its process each time: it becomes a dead letter, and the task behind it is done",
    fault: "process killed",
    about: "nothing lost",
    needs: [],
    // Each start takes an ack_wait and a lease.
    env: { PAWL_CRASH_LIMIT: "3" },
    seconds: 24,
    run: async (stage) => {
      const id = await stage.submit([{ do: "die" }], { ends: "failed" });
      await stage.submit([{ do: "step", name: "behind", ms: 0 }]);
      const most = stage.deps.settings.crashLimit + 2;
      for (let starts = 1; starts <= most; starts++) {
        const runner = await stage.runner(String(starts));
        const ended = await Promise.race([runner.exited.then(() => "died"), comesTo(stage, id, "failed")]);
        if (ended !== "died") return stage.tell(`runner ${starts} made a dead letter of it`);
        stage.tell(`runner ${starts} died of it`);
      }
    },
  },
];
