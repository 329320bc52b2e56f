import { cancel, redrive, resolve, signal } from "../../../shared/audit/operations.ts";
import { approvalSignal } from "../../../shared/task/signals.ts";
import { BUDGET } from "../agents/lib/errand.ts";
import type { Drill } from "../drill.ts";
import { comesTo, person } from "../stage/person.ts";
import { FRUGAL } from "../stage/stage.ts";

export const people: readonly Drill[] = [
  {
    name: "redrive-inside-the-window",
    what: "A dead letter is redriven at once, from its first step on: it is not swallowed, and its effect is not done again",
    fault: "asked twice",
    about: "never repeated",
    needs: [],
    seconds: 5,
    run: async (stage) => {
      const id = await stage.submit([
        { do: "step", name: "first", ms: 0 },
        { do: "effect", name: "post", how: "blind" },
        { do: "fail" },
        { do: "step", name: "last", ms: 0 },
      ]);
      await stage.runner("A");
      if ((await comesTo(stage, id, "failed")) !== "failed") return;
      stage.tell(
        "it has failed for good; what it failed on is mended, and it is redriven from its first step",
      );
      await stage.mend(id);
      await redrive(person(stage), id, { from: "first#1" });
    },
  },
  {
    name: "budget-spent-in-a-crash",
    what: "A runner is killed while its model answers: the lost turn stays charged, and the next is not paid",
    fault: "process killed",
    about: "never repeated",
    needs: [],
    budget: BUDGET,
    seconds: 8,
    run: async (stage) => {
      const id = await stage.submit([{ do: "turn", name: "draft" }], { agent: FRUGAL, ends: "failed" });
      stage.model.hold(true);
      const a = await stage.runner("A", { agent: FRUGAL });
      await stage.seen("its model was asked", ({ kind }) => kind === "turn");
      await a.kill();
      stage.model.hold(false);
      stage.tell(`runner A is killed while its model answers; the budget of $${BUDGET} is for one turn`);
      await stage.runner("B", { agent: FRUGAL });
      await comesTo(stage, id, "failed");
    },
  },
  {
    name: "approval-delivered-twice",
    what: "Two people approve while the task makes ready to wait: it goes on once",
    fault: "asked twice",
    about: "nothing lost",
    needs: [],
    seconds: 5,
    run: async (stage) => {
      const id = await stage.submit([
        { do: "approval", name: "publish" },
        { do: "effect", name: "post", how: "blind" },
      ]);
      const at = { PAWL_DRILL_PAUSE_AT: "before:waiting", PAWL_DRILL_RESUME: "1" };
      const a = await stage.runner("A", { env: at });
      await a.stoppedAt("before:waiting");
      for (const by of ["ann", "bob"])
        await signal(person(stage), id, approvalSignal("publish"), { approved: true, by });
      stage.tell("ann and bob have both approved, before the task waits");
      a.resume();
    },
  },
  {
    name: "cancel-during-takeover",
    what: "A task is cancelled while its successor waits, and an effect of the dead runner has arrived: a person is asked first",
    fault: "process killed",
    about: "never repeated",
    needs: [],
    seconds: 8,
    run: async (stage) => {
      const id = await stage.submit([{ do: "effect", name: "post", how: "blind" }], { ends: "cancelled" });
      stage.board.hold(true);
      const a = await stage.runner("A");
      await stage.seen("the effect has arrived", ({ kind }) => kind === "post");
      await a.kill();
      stage.board.hold(false);
      const b = await stage.runner("B");
      await b.says(/"takeover\.wait"/);
      await cancel(person(stage), id);
      stage.tell("runner A died with an effect under way; its task is cancelled while runner B waits");
      if ((await comesTo(stage, id, "in_doubt")) !== "in_doubt") return;
      stage.tell("the task is in doubt; a person looks, and says that it happened");
      await resolve(person(stage), id, { happened: true, receipt: { status: 200, by: "a person" } });
    },
  },
];
