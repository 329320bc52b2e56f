import { messageOf, PawlError } from "../errors/errors.ts";
import { type Deps, mark, uniqueToken } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { admit } from "../quota/admit.ts";
import { create, update } from "../retry/guarded-write.ts";
import { whilePatient } from "../retry/patience.ts";
import { scheduled, submitted } from "../task/create.ts";
import type { Dispatched, DuplicateLayer, Meta, Millis, State, Task } from "../task/document.ts";
import { checkInputSize, LABEL_LIMIT, metaOf } from "../task/envelope.ts";
import { checkAgentName, checkTaskId, laneOf, streamName } from "../task/names.ts";
import { apply } from "../task/transitions.ts";
import { hashInput, type JsonObject } from "../values/json.ts";
import { plainTraceparent } from "../values/traceparent.ts";
import { carrierOf, dispatch, msgIdOf, queueOf } from "./dispatch.ts";
import { publish } from "./publish.ts";
import { hasMessage } from "./sweep.ts";

export interface Submission {
  readonly agent: string;
  /** How many lanes the agent has. */
  readonly lanes: number;
  readonly input: JsonObject;
  /** Names the work: submitting it again is the same task. Made up when left out. */
  readonly id?: string;
  readonly orderingKey?: string;
  /** Instead of `submit:<id>`: which operation this is. Tasks of one Msg-Id share a lane, where its window is. */
  readonly msgId?: string;
  /** The task that submits this one, and may wait for it. */
  readonly parent?: string;
  readonly meta?: Meta;
  /** Where in its submitter's trace it was asked for, as the header of that name has it. What is none is as good as not given. */
  readonly traceparent?: string;
  /** The task's id stands for a caller's key. */
  readonly byKey?: boolean;
  /** Not before then. */
  readonly at?: Millis;
}

export interface Submitted {
  readonly id: string;
  /** "already": the same work had been submitted before, and this changed nothing. */
  readonly kind: "accepted" | "already";
  readonly state: State;
  /** For "already": which layer stopped the duplicate. */
  readonly stoppedBy?: DuplicateLayer;
}

/** The state first, then the message. Returns once both are stored, or throws saying what is certain. */
export async function submit(deps: Deps, submission: Submission): Promise<Submitted> {
  const agent = checkAgentName(submission.agent);
  const id = checkTaskId(submission.id ?? uniqueToken());
  const bytes = checkInputSize(submission.input, deps.settings.inputLimit);
  const { orderingKey, parent, input, msgId, at: dueAt } = submission;
  const meta = metaWith(submission);
  if (orderingKey !== undefined && orderingKey.length > LABEL_LIMIT) {
    throw new PawlError(
      "input_invalid",
      `The ordering key has ${orderingKey.length} characters; ${LABEL_LIMIT} is the limit`,
    );
  }
  if (msgId !== undefined && !/^[\x21-\x7e]{1,200}$/.test(msgId))
    throw new PawlError(
      "input_invalid",
      `The Msg-Id is ${JSON.stringify(msgId.slice(0, 200))}; it should be 1 to 200 printable ASCII characters without spaces`,
    );
  const lane = laneOf(orderingKey ?? msgId ?? id, submission.lanes);
  const { now, stamp, by } = mark(deps);
  const queue = queueOf(deps, { agent, lane });
  const key = {
    ...(orderingKey !== undefined && { orderingKey }),
    ...(parent !== undefined && { parent }),
    ...(meta !== undefined && { meta: metaOf(meta) }),
  };
  // Before anything is stored: what is refused here leaves nothing, and what was accepted is refused by nobody.
  const isLater = dueAt !== undefined && dueAt > now;
  const isChild = parent !== undefined;
  await admit(deps, { id, agent, owner: meta?.owner, queue, bytes, isChild, isLater });
  const inputHash = hashInput(input);
  const envelope = { id, agent, lane, ...key, input, inputHash, at: now, stamp, by };
  const task = isLater ? scheduled(envelope, dueAt) : submitted(envelope, streamName(queue));

  const phase = { agent, phase: "dispatched_write" } as const;
  const created = await create(deps, task, whilePatient(deps, `Task ${id}`, phase));
  if (created.kind === "moot") return again(deps, created.stored as Stored, task, submission);
  if (isLater) return { id, kind: "accepted", state: "scheduled" };
  const stored = { task: created.stored.task as Dispatched, revision: created.stored.revision };
  await publish(deps, stored, queue, msgIdOf(task));
  return { id, kind: "accepted", state: "dispatched" };
}

function metaWith({ meta, msgId, traceparent: given }: Submission): Meta | undefined {
  const traceparent = plainTraceparent(given);
  if (msgId === undefined && traceparent === undefined) return meta;
  return {
    ...meta,
    ...(msgId !== undefined && { msgId }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** The id is taken: by the same work, which may have been left half submitted, or by other work. */
async function again(
  deps: Deps,
  found: Stored,
  wanted: Task,
  { msgId, byKey }: Submission,
): Promise<Submitted> {
  const { task } = found;
  if (task.agent !== wanted.agent || task.inputHash !== wanted.inputHash) {
    const differs = task.agent === wanted.agent ? "another input" : `agent ${task.agent}`;
    throw new PawlError(
      "id_conflict",
      `Task ${task.id} exists with ${differs}. Use another id for other work, or the same input for the same work`,
    );
  }
  if (task.meta?.requestHash !== wanted.meta?.requestHash) {
    throw new PawlError(
      "id_conflict",
      `Task ${task.id} was submitted by another request: its key stands for that one`,
    );
  }
  const healed = await heal(deps, found, msgId);
  if (!healed) return { id: task.id, kind: "accepted", state: "dispatched" };
  // The caller's key led to this task, however far the task has come.
  const stoppedBy = byKey ? "key" : healed;
  deps.meter.count("duplicates_stopped", { agent: task.agent, layer: stoppedBy });
  await count(deps, found, stoppedBy);
  return { id: task.id, kind: "already", state: task.state, stoppedBy };
}

/** A submitter that died between its write and its publish left a task without a message: finish that. */
async function heal(
  deps: Deps,
  found: Stored,
  msgId: string | undefined,
): Promise<DuplicateLayer | undefined> {
  const { task, revision } = found;
  if (task.state === "scheduled" && task.dueAt <= deps.clock.now()) {
    return (await dispatch(deps, found)) ? undefined : "document";
  }
  if (task.state !== "dispatched") return "document";
  // Known to have been published, under a caller's own Msg-Id. A message that was lost since is the sweep's to replace.
  const isQueued = async () => task.fence === 0 && (await hasMessage(deps, task).catch(() => false));
  if (task.seq !== undefined && !(await isQueued())) return "document";
  const id = task.dispatches === 1 && msgId !== undefined ? msgId : msgIdOf(task);
  return (await publish(deps, { task, revision }, carrierOf(deps, task), id)).stoppedBy;
}

async function count(deps: Deps, found: Stored, layer: DuplicateLayer): Promise<void> {
  try {
    const change = (task: Task, own: ReturnType<typeof mark>) =>
      apply(task, { type: "publishDuplicate", layer }, own);
    await update(deps, found, change, whilePatient(deps, `Task ${found.task.id}`));
  } catch (error) {
    deps.log("warn", "duplicate.uncounted", { task: found.task.id, layer, reason: messageOf(error) });
  }
}
