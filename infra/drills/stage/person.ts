import type { Wired } from "../../../functions/wiring/wire.node.ts";
import type { State } from "../../../shared/task/document.ts";
import { isFinal } from "../../../shared/task/table.ts";
import { commandActor } from "../../cli/actor.ts";
import type { Stage } from "./stage.ts";

/** As an operator does it, so that the audit trail has it too. */
export function person({ deps }: Stage): Wired {
  return { ...deps, actor: commandActor(), [Symbol.asyncDispose]: async () => {} };
}

/** Waits until a task is in this state, or over in any: what it came to instead, the judge says. */
export function comesTo(stage: Stage, id: string, state: State): Promise<State> {
  return stage.until(`${id} is ${state}`, async () => {
    const task = await stage.task(id);
    return (task.state === state || isFinal(task)) && task.state;
  });
}
