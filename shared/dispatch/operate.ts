import { messageOf, PawlError } from "../errors/errors.ts";
import { doubtful, reachedBy } from "../journal/entries.ts";
import { countSpent, readJournal } from "../journal/journal.ts";
import { chosenEntry } from "../journal/redriven.ts";
import { type Deps, expiryOf } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { bare, readThrough, update } from "../retry/guarded-write.ts";
import { whilePatient } from "../retry/patience.ts";
import { DOCUMENT_LIMIT, DOCUMENT_OVERHEAD } from "../settings/settings.ts";
import type { Dispatched, Task, TaskFailure } from "../task/document.ts";
import type { Mark } from "../task/events.ts";
import { queueNamed, streamName } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { isAsked, questionOf, signalText, waitsText } from "../task/signals.ts";
import { successionWait } from "../task/succession.ts";
import { isFinal } from "../task/table.ts";
import { apply } from "../task/transitions.ts";
import { byteLength, canonicalJson, type Json } from "../values/json.ts";
import { msgIdOf, queueOf } from "./dispatch.ts";
import { publish } from "./publish.ts";

/** Most signals that a document keeps: they are the handler's to consume, and stay for its journal. */
const MOST_SIGNALS = 1_000;

/**
 * Stores an answer or event, however early it came; a task that waits for it goes on. `of`: the question that is answered;
 * `ifAsked`: only if the task waits for it now, so that a mistyped name is no answer.
 */
export function signal(
  deps: Deps,
  id: string,
  name: string,
  value: Json,
  of: { readonly question?: string; readonly ifAsked?: boolean } = {},
): Promise<Task> {
  return operate(deps, id, (task, mark) => {
    checkQuestion(task, of.question);
    if (isFinal(task))
      throw new PawlError("illegal_transition", `Task ${id} is ${task.state}: it waits for nothing`);
    if (task.signals.length >= MOST_SIGNALS)
      throw new PawlError(
        "signal_refused",
        `Task ${id} has ${task.signals.length} signals; more are not kept`,
      );
    const isRepeat = isRepeated(task, name, value, mark.now);
    if (of.ifAsked && !isRepeat && !isAsked(task, name))
      throw new PawlError("signal_unasked", `Task ${id} ${waitsText(task)}, and not for ${signalText(name)}`);
    const told = isRepeat ? task : apply(task, { type: "signal", name, value }, mark);
    checkRoom(deps, told);
    if (!isAsked(told, name)) return told;
    return apply(told, { type: "wake", queue: streamName(queueOf(deps, told)), note: name }, mark);
  });
}

/** What it takes must leave room for the result, or work that was paid for could not be recorded. */
function checkRoom({ settings }: Deps, told: Task): void {
  const room = DOCUMENT_LIMIT - settings.resultLimit - DOCUMENT_OVERHEAD;
  if (byteLength(JSON.stringify(bare(told))) <= room) return;
  throw new PawlError(
    "signal_refused",
    `Task ${told.id}: with this its document would leave no room for its result`,
  );
}

/** Who answers what they were shown must not answer what is asked next. */
function checkQuestion(task: Task, question: string | undefined): void {
  if (question === undefined || questionOf(task) === question) return;
  throw new PawlError("question_moved", `Task ${task.id} is ${task.state}: it has moved on since`);
}

/** A second click, or a caller's second try: said again, an answer must not answer the next question. */
const SAME_ANSWER = 300_000;

function isRepeated(task: Task, name: string, value: Json, now: number): boolean {
  const last = task.signals.findLast((one) => one.name === name);
  // What was said before a redrive was said of what failed then.
  if (!last || isAsked(task, name) || last.at < (task.redriven?.at ?? 0)) return false;
  // A child's word is a hint, and as good once as often.
  if (name.startsWith("child:")) return true;
  const isApproval = name.startsWith("approval:");
  return isApproval && now - last.at < SAME_ANSWER && canonicalJson(last.value) === canonicalJson(value);
}

/** What a person found out about an effect in doubt. */
export type Resolution =
  | { readonly happened: true; readonly receipt?: Json }
  | { readonly happened: false }
  | { readonly fail: true };

/** `of`: the question, or the effect, that is answered: another one is left alone. */
export function resolve(
  deps: Deps,
  id: string,
  resolution: Resolution,
  of: { readonly question?: string; readonly effect?: string } = {},
): Promise<Task> {
  return operate(deps, id, (task, mark) => {
    checkQuestion(task, of.question);
    if (task.state !== "in_doubt")
      throw new PawlError("illegal_transition", `Task ${id} is ${task.state}: nothing about it is in doubt`);
    if (of.effect !== undefined && of.effect !== task.effect)
      throw new PawlError("question_moved", `Task ${id}: ${task.effect} is in doubt, not ${of.effect}`);
    if ("fail" in resolution) {
      const error: TaskFailure = {
        code: "effect_in_doubt",
        message: `Nobody knows whether ${task.effect} happened, and the task was given up`,
        phase: "handler",
      };
      return apply(task, { type: "resolve", to: "failed", error, expiresAt: expiryOf(deps, mark.now) }, mark);
    }
    const queue = streamName(queueOf(deps, task));
    const told = apply(task, { type: "resolve", to: "dispatched", queue, answer: { ...resolution } }, mark);
    checkRoom(deps, told);
    return told;
  });
}

/**
 * What is queued is cancelled at once, if its journal has no effect that may have happened; what runs, or whose last
 * holder may still act, is asked to stop, and its holder, or the next, decides on the journal. The journal is read after
 * the document, which is written only if it is still the one that was read: nobody journals for a task that is let go.
 */
export async function cancel(deps: Deps, id: string): Promise<Task> {
  const patient = whilePatient(deps, `Task ${id}`);
  let readFor: string | undefined;
  let journal: Awaited<ReturnType<typeof readJournal>>;
  const change = (task: Task, mark: Mark): Task | undefined => {
    if (isFinal(task)) throw new PawlError("illegal_transition", `Task ${id} is ${task.state}: it is over`);
    if (task.state === "running") return apply(task, { type: "requestCancel" }, mark);
    if (task.state !== "in_doubt") {
      const mayAct = successionWait(task, mark) > 0;
      if (!mayAct && readFor !== task.stamp) {
        readFor = task.stamp;
        return undefined;
      }
      // An effect of it may have happened, or still happen: its next holder finds out, or asks.
      const isOpen = journal !== undefined && doubtful(journal.entries, () => false) !== undefined;
      if (mayAct || isOpen) return asked(deps, task, mark);
    }
    const expiresAt = expiryOf(deps, mark.now);
    // What a holder paid that died is in the journal only.
    const reached = reachedBy(task, journal?.head);
    return apply(task, { type: "cancel", ended: true, expiresAt, reached }, mark);
  };
  for (;;) {
    const cancelled = await operate(deps, id, change, patient);
    if (cancelled) return cancelled;
    journal = await readJournal(deps, id, patient);
  }
}

/** The task with a request to cancel it: the next holder finds the request before it starts anything. */
function asked(deps: Deps, task: Task, mark: Mark): Task {
  const asking = apply(task, { type: "requestCancel" }, mark);
  const queue = streamName(queueOf(deps, task));
  if (asking.state === "scheduled") return apply(asking, { type: "dispatch", queue }, mark);
  if (asking.state === "waiting") return apply(asking, { type: "wake", queue }, mark);
  // On a strict lane its message waits for the next try: another one comes at once.
  const waits = asking.state === "dispatched" && asking.seq !== undefined && (asking.dueAt ?? 0) > mark.now;
  return waits ? apply(asking, { type: "requeue", queue, outcome: "rescheduled" }, mark) : asking;
}

/**
 * A message that a change has settled leaves its queue. On a strict lane that of a failed try waits for its time, and
 * everything behind it too.
 */
async function leaveQueue(deps: Deps, before: Task, task: Task): Promise<void> {
  const last = task.settled.at(-1);
  if (!last || isSettled(before, last.queue, last.seq)) return;
  const queue = queueNamed(last.queue, deps.settings.namespace);
  if (!queue) return;
  await deps.bus.remove(queue, last.seq).catch((error: unknown) => {
    deps.log("warn", "cancelled.in-queue", { task: task.id, seq: last.seq, reason: messageOf(error) });
  });
}

/** How a dead letter is tried again, if not on its journal as it is. */
export interface Redrive {
  /** All that it did is done again. */
  readonly fromScratch?: boolean;
  /** The entry of its journal from which on all but effects is done again, such as "draft#1". */
  readonly from?: string;
  /** Only if this is still what its people were asked. */
  readonly question?: string;
}

/**
 * A dead letter is tried again. One write: the next holder reads in the document what it has to forget of the journal,
 * and writes that there before it starts the handler.
 */
export async function redrive(deps: Deps, id: string, how: Redrive = {}): Promise<Task> {
  const { fromScratch = false, from, question } = how;
  if (fromScratch && from !== undefined)
    throw new PawlError("redrive_refused", "From scratch, and from an entry of its journal: choose one");
  const patient = whilePatient(deps, `Task ${id}`);
  const journal = from === undefined ? undefined : await readJournal(deps, id, patient);
  const change = (task: Task, mark: Mark): Task => {
    checkQuestion(task, question);
    if (task.state !== "failed")
      throw new PawlError("illegal_transition", `Task ${id} is ${task.state}: only what failed is redriven`);
    if (task.raw)
      throw new PawlError(
        "redrive_refused",
        `Task ${id} is a message that could not be read as a task: there is nothing to run`,
      );
    const isOwn = journal?.head.born === task.createdAt && journal.head.epoch === task.epoch;
    const entries = isOwn ? journal.entries : [];
    const chosen = from !== undefined && { from: chosenEntry(entries, id, from), note: `from ${from}` };
    const queue = streamName(queueOf(deps, task));
    return apply(task, { type: "redrive", queue, fromScratch, ...chosen }, mark);
  };
  return operate(deps, id, change, patient);
}

/** One change by a person or another task; where it dispatches, the message follows. Undefined where it wants none. */
async function operate<Changed extends Task | undefined>(
  deps: Deps,
  id: string,
  change: (task: Task, mark: Mark) => Changed,
  patient?: ReturnType<typeof whilePatient>,
): Promise<Changed extends Task ? Task : Task | undefined>;
async function operate(
  deps: Deps,
  id: string,
  change: (task: Task, mark: Mark) => Task | undefined,
  patient = whilePatient(deps, `Task ${id}`),
): Promise<Task | undefined> {
  const seen = await readThrough(deps, id, patient);
  if (!seen) throw new PawlError("task_unknown", `There is no task ${id} in ${deps.store.name}`);
  const written = await update(deps, seen, change, patient);
  if (written.kind === "moot" && written.stored) return undefined;
  if (written.kind === "moot") throw new PawlError("task_unknown", `Task ${id} is gone`);
  const { task, revision } = written.stored;
  countSpent(deps, seen.task, task);
  await leaveQueue(deps, seen.task, task);
  const isOurs = task.state === "dispatched" && task.dispatches > seen.task.dispatches;
  // What was said is stored: a message that could not be sent now is sent by the next sweep.
  if (isOurs)
    await send(deps, { task, revision }).catch((error: unknown) => {
      deps.log("warn", "operate.unsent", { task: id, reason: messageOf(error) });
    });
  return task;
}

async function send(deps: Deps, { task, revision }: Stored): Promise<void> {
  await publish(deps, { task: task as Dispatched, revision }, queueOf(deps, task), msgIdOf(task));
}
