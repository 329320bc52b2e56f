import type { AgentContext, Child } from "../agent.ts";
import { submit } from "../dispatch/submit.ts";
import { PawlError } from "../errors/errors.ts";
import { readThrough } from "../retry/guarded-write.ts";
import type { Task } from "../task/document.ts";
import { childSignal } from "../task/signals.ts";
import { isFinal } from "../task/table.ts";
import { type Json, type JsonObject, plainJson, sha256 } from "../values/json.ts";
import { type Scene, wrongCall } from "./scene.ts";

/**
 * Should a child's word that it is over get lost, its parent finds out by itself: it looks after as long as it has
 * waited already, but no sooner and no later than this. Each look costs a dispatch.
 */
const FIRST_LOOK = 300_000;
const LATEST_LOOK = 6 * 3_600_000;

/**
 * A child's id follows from its parent's and the key, so however often the parent starts, and wherever it died, it is
 * one task. The child's document says what became of it; the signal only wakes the parent.
 */
export function childrenOf(scene: Scene): AgentContext<unknown>["submit"] {
  const { task, journal, deps, guard, through, park } = scene;

  const ended = async (name: string, id: string): Promise<Json> =>
    through("wait", `${name}/result`, async ({ key, at, alone, known }) => {
      if (known?.state === "done") return outcome(id, (await journal.read(known.kept)) as unknown as Ended);
      if (!known) await journal.append({ kind: "intent", of: "wait", key, at, alone });
      const child = (await readThrough(deps, id, guard))?.task;
      if (!child || isFinal(child)) {
        const value = endOf(child);
        await journal.append({ kind: "receipt", key, value: value as unknown as Json });
        return outcome(id, value);
      }
      const now = deps.clock.now();
      const waited = now - (known?.begun ?? now);
      const dueAt = now + Math.min(Math.max(waited, FIRST_LOOK), LATEST_LOOK);
      return park({ kind: "wait", waitingFor: [childSignal(id)], known: task.signals.length, dueAt });
    });

  return async (agent, input, { key }) => {
    if (typeof key !== "string" || key === "")
      throw wrongCall("submit", agent, "{ key }, a text that names the child");
    const name = `submit ${agent} ${key}`.slice(0, 120);
    const id = await through("step", name, async (call) => {
      if (call.known) return (await journal.read(call.known.kept)) as string;
      const lanes = deps.lanesOf?.(agent);
      if (lanes === undefined)
        throw new PawlError("agent_unknown", `submit: there is no agent ${JSON.stringify(agent)}`);
      const childId = `c-${(await sha256(`${task.id}/${task.createdAt}/${task.epoch}/${agent}/${key}`)).slice(0, 40)}`;
      // As its message will have it: a property that is undefined is none, and the child is known by a hash of the rest.
      const plain = plainJson(input, `The input of child ${key}`, "input_invalid") as JsonObject;
      await submit(deps, { agent, lanes, input: plain, id: childId, parent: task.id });
      await journal.append({ kind: "step", key: call.key, at: call.at, alone: call.alone, value: childId });
      return childId;
    });
    const child: Child = { id, result: () => ended(name, id) };
    return child;
  };
}

type Ended = { readonly result: Json } | { readonly code: string; readonly message: string };

function endOf(child: Task | undefined): Ended {
  if (child?.state === "completed") return { result: child.result };
  if (child?.state === "failed") return { code: child.error.code, message: child.error.message };
  return {
    code: child ? "cancelled" : "task_unknown",
    message: child ? "It was cancelled" : "Its document is gone",
  };
}

function outcome(id: string, end: Ended): Json {
  if ("result" in end) return end.result;
  throw new PawlError("child_failed", `Child task ${id} ended without a result: ${end.code}: ${end.message}`);
}
