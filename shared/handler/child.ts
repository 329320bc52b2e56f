import type { Agent, AgentContext } from "../agent.ts";
import { submit } from "../dispatch/submit.ts";
import { NotNow, PawlError } from "../errors/errors.ts";
import { acceptedInput } from "../input.ts";
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
  const { task, journal, deps, guard, heard, through, park } = scene;

  const ended = async (name: string, id: string): Promise<Json> =>
    through("wait", `${name}/result`, async ({ key, at, alone, known }) => {
      const outcome = (end: Ended): Json => {
        if ("result" in end) return end.result;
        const why = `Child task ${id} ended without a result: ${end.code}: ${end.message}`;
        const error = new PawlError("child_failed", why);
        heard.failed(key, error);
        throw error;
      };
      if (known?.state === "done") return outcome((await journal.read(known.kept)) as unknown as Ended);
      if (!known) await journal.append({ kind: "intent", of: "wait", key, at, alone });
      const child = (await readThrough(deps, id, guard))?.task;
      if (!child || isFinal(child)) {
        const value = endOf(child);
        await journal.append({ kind: "receipt", key, value: value as unknown as Json });
        return outcome(value);
      }
      const now = deps.clock.now();
      const waited = now - (known?.begun ?? now);
      const dueAt = now + Math.min(Math.max(waited, FIRST_LOOK), LATEST_LOOK);
      return park({ kind: "wait", waitingFor: [childSignal(id)], known: task.signals.length, dueAt });
    });

  const submitChild = async (
    given: string | Readonly<Record<string, Agent>>,
    input: unknown,
    key: unknown,
  ) => {
    const { agent, definition } = agentOf(given);
    if (typeof key !== "string" || key === "")
      throw wrongCall("submit", agent, "{ key }, a text that names the child");
    const name = `submit ${agent} ${key}`.slice(0, 120);
    const id = await through("step", name, async (call, trace) => {
      if (call.known) return (await journal.read(call.known.kept)) as string;
      const lanes = deps.lanesOf?.(agent);
      if (lanes === undefined)
        throw new PawlError("agent_unknown", `submit: there is no agent ${JSON.stringify(agent)}`);
      if (deps.reaches && !deps.reaches.includes(agent))
        throw new PawlError(
          "agent_unknown",
          `submit: this agent's identity does not reach ${agent}. Name it in its \`children\`, and give both their new permissions: pawl creds`,
        );
      const childId = `c-${sha256(`${task.id}/${task.createdAt}/${task.epoch}/${agent}/${key}`).slice(0, 40)}`;
      // As its message will have it: a property that is undefined is none, and the child is known by a hash of the rest.
      const plain = plainJson(input, `The input of child ${key}`, "input_invalid") as JsonObject;
      const accepted = definition && (await acceptedInput(definition, plain));
      if (accepted && "problem" in accepted)
        throw new PawlError("input_invalid", `submit ${agent} ${key}: ${accepted.problem.message}`);
      // Whoever may see a task may see what it starts.
      const owner = task.meta?.owner;
      // And it belongs to its trace.
      const traceparent = trace?.traceparent ?? task.meta?.traceparent;
      const meta = {
        ...(owner !== undefined && { meta: { owner } }),
        ...(traceparent !== undefined && { traceparent }),
      };
      const begun = deps.clock.monotonic();
      try {
        await submit(deps, { agent, lanes, input: plain, id: childId, parent: task.id, ...meta });
      } catch (error) {
        // Refused before anything was stored: the parent has done nothing wrong, and spends no attempt on it.
        if (!(error instanceof NotNow)) throw error;
        deps.log("warn", "child.refused", { task: task.id, child: childId, reason: error.message });
        return park({ kind: "sleep", dueAt: deps.clock.now() + Math.min(error.after * 1_000, LATEST_LOOK) });
      }
      const took = Math.round(deps.clock.monotonic() - begun);
      const { key: name, at, alone } = call;
      await journal.append({ kind: "step", key: name, at, alone, took, value: childId });
      return childId;
    });
    return { id, result: () => ended(name, id) };
  };
  // What a child of a typed agent returns, the agent's own type says.
  return ((agent, input, options) =>
    submitChild(agent, input, options?.key)) as AgentContext<unknown>["submit"];
}

/** By its name, or by its module under its name: `{ digest }`. */
function agentOf(given: string | Readonly<Record<string, Agent>>): { agent: string; definition?: Agent } {
  if (typeof given === "string") return { agent: given };
  const [[agent, definition] = ["", undefined], ...more] = Object.entries(given ?? {});
  if (definition?.kind === "pawl.agent" && more.length === 0) return { agent, definition };
  throw wrongCall(
    "submit",
    Object.keys(given ?? {}),
    'an agent\'s name, or its module under its name: { "digest": digest }',
  );
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
