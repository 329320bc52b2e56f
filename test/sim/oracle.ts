import type { Head } from "../../shared/journal/entries.ts";
import type { KeptMessage } from "../../shared/ports/bus.ts";
import { graceOf, makeSettings } from "../../shared/settings/settings.ts";
import type { InDoubt, Task } from "../../shared/task/document.ts";
import { isSettled } from "../../shared/task/settled.ts";
import { isFinal } from "../../shared/task/table.ts";
import type { Plan } from "./plan/plan.ts";
import { Broken, type PromiseName } from "./promises.ts";
import { wronglyForgotten } from "./redrives.ts";
import type { Asked } from "./world/model.ts";
import type { Process } from "./world/process.ts";

/** One execution of a task's handler, as the world sees it. */
export interface Run {
  readonly taskId: string;
  readonly process: string;
  readonly number: number;
}

/** Nothing in a simulation is a reason to fail with one of these. */
const UNFORESEEN: ReadonlySet<string> = new Set([
  "document_missing",
  "document_altered",
  "journal_altered",
  "journal_mismatch",
  "call_invalid",
  "result_invalid",
]);

/** How long a successor waits for code beside a wait. */
export const GRACE = graceOf(makeSettings({}));

/** Sees what the simulated world really did, and says when that breaks a promise. */
export class Oracle {
  readonly tasks = new Map<string, Task>();
  readonly heads = new Map<string, Head>();
  /** What was broken first. */
  broken: Broken | undefined;
  /** Messages that somebody planted or took away: they are nobody's fault. */
  readonly strangers = new Set<string>();
  private readonly taken: { readonly queue: string; readonly seq: number }[] = [];
  open = 0;
  private readonly newest = new Map<string, Run>();
  private readonly begun = new Map<string, number>();
  private readonly effects = new Map<string, number>();
  private readonly spent = new Map<string, number>();
  private readonly budgets: Readonly<Record<string, number | undefined>>;
  private readonly isHarmless: boolean;
  private readonly hasRaces: boolean;
  private readonly hasNestedWaits: boolean;
  /** Who held each task under which fence. */
  private readonly holders = new Map<string, string>();
  /** Of each journal the places of the signals that waits have taken. */
  private readonly answers = new Map<string, Set<number>>();
  /** Executions that are suspended, with other code of their handler that has the grace to end. */
  private readonly lingering = new Set<Run>();
  /** Effects that somebody really began, by task and key. */
  private readonly tried = new Set<string>();
  /** What a model's tools did, by conversation and turn: under which id. */
  private readonly used = new Map<string, string>();
  private readonly told: (what: string) => void;
  /** Somebody wants to know what fails. */
  failed: ((task: Extract<Task, { state: "failed" }>) => void) | undefined;

  constructor(
    { agents: { main, child }, isHarmless = false }: Pick<Plan, "agents" | "isHarmless">,
    told: (what: string) => void,
  ) {
    this.isHarmless = isHarmless;
    this.budgets = { main: main.budgetUsd, child: child.budgetUsd };
    const programs = JSON.stringify([main.program, child.program]);
    this.hasRaces = programs.includes('"how":"race"');
    this.hasNestedWaits = /"body":\[[^\]]*"do":"approval"/.test(programs);
    this.told = told;
  }

  breaks(promise: PromiseName, message: string): void {
    this.told(`BROKEN: ${promise}: ${message}`);
    this.broken ??= new Broken(promise, message);
  }

  written(task: Task): void {
    const before = this.tasks.get(task.id);
    this.tasks.set(task.id, task);
    if (task.state === "running") this.holders.set(`${task.id}/${task.fence}`, task.runner);
    const run = this.newest.get(task.id);
    const isLetGo = before?.state === "running" && task.state !== "running";
    if (run && isLetGo && task.lease === GRACE) this.lingering.add(run);
    this.open += (isFinal(task) ? 0 : 1) - (before && !isFinal(before) ? 1 : 0);
    if (task.state === "failed" && this.isUnforeseen(task.error.code) && task.raw === undefined)
      this.breaks("no accident", `task ${task.id} failed: ${task.error.code}: ${task.error.message}`);
    // Who cancels a task that is in doubt has been told.
    if (task.state === "failed" && before?.state !== "failed") this.failed?.(task);
    const isTold = before?.state === "in_doubt" || before?.state === "cancelled";
    if (task.state === "cancelled" && !isTold) this.checkDoubts(task);
    if (!before || !isFinal(before)) return;
    const isRedriven = before.state === "failed" && task.state === "dispatched";
    if (task.state !== before.state && !isRedriven)
      this.breaks("one final state", `task ${task.id} was ${before.state} and is ${task.state}`);
    const resultOf = (one: Task) => JSON.stringify(one.state === "completed" ? one.result : undefined);
    if (resultOf(task) !== resultOf(before))
      this.breaks("one final state", `task ${task.id} has another result`);
  }

  private checkDoubts({ id, signals, createdAt, epoch }: Task): void {
    const head = this.heads.get(id);
    if (head?.born !== createdAt || head.epoch !== epoch) return;
    const open = new Map<string, boolean>();
    for (const entry of head.recent)
      if (entry.kind === "intent" ? entry.of === "effect" : open.has(entry.key))
        open.set(entry.key, entry.kind === "intent" || entry.kind === "unsure");
    // One that was never begun has an end that its holder knows.
    for (const [key, isOpen] of open)
      if (
        isOpen &&
        this.tried.has(`${id}/${key}`) &&
        !signals.some(({ name }) => name.startsWith(`effect ${key} try`))
      )
        this.breaks("no doubt dropped", `task ${id} is cancelled, and nobody knows whether ${key} happened`);
  }

  private isUnforeseen(code: string): boolean {
    if (this.isHarmless) return true;
    if (code === "call_invalid" && this.hasNestedWaits) return false;
    // Nobody sees that code runs beside other code in a race: its calls may come in another order than before.
    return UNFORESEEN.has(code) && !(code === "journal_mismatch" && this.hasRaces);
  }

  journaled(head: Head): void {
    this.heads.set(head.taskId, head);
    for (const entry of head.recent)
      if (entry.kind === "receipt" && entry.signal !== undefined) this.takenBy(head).add(entry.signal);
    const task = this.tasks.get(head.taskId);
    const wrong = task && wronglyForgotten(head, task);
    if (wrong) this.breaks("nothing repeated", `task ${head.taskId}: ${wrong}`);
  }

  /** By all entries that there were: of a long journal the head has only the last. */
  takenBy({ taskId, born, epoch }: Pick<Head, "taskId" | "born" | "epoch">): Set<number> {
    const key = `${taskId}/${born}/${epoch}`;
    const taken = this.answers.get(key) ?? new Set();
    this.answers.set(key, taken);
    return taken;
  }

  /** A tool that does something is used. A turn that was asked again, and has other ids, would use it twice. */
  uses(taskId: string, name: string, turn: number, id: string): void {
    const key = `${taskId}/${this.tasks.get(taskId)?.epoch}/${name}/${turn}`;
    const before = this.used.get(key) ?? id;
    this.used.set(key, before);
    if (before !== id)
      this.breaks(
        "nothing repeated",
        `task ${taskId}: the effect of ${name} was ${before}, and is ${id} now`,
      );
  }

  /** The first line of a handler. */
  begins(taskId: string, process: Process): Run {
    const number = (this.begun.get(taskId) ?? 0) + 1;
    this.begun.set(taskId, number);
    const run = { taskId, process: process.name, number };
    this.newest.set(taskId, run);
    this.told(`task ${taskId}: execution ${number} begins`);
    const task = this.tasks.get(taskId);
    if (task && isFinal(task)) this.breaks("one final state", `task ${taskId} is ${task.state}, and is run`);
    return run;
  }

  lingers(run: Run): boolean {
    return this.lingering.has(run);
  }

  /** An execution does something that can be seen from outside. */
  acts(run: Run, kind: "step" | "effect" | "turn" | "work", key: string): void {
    const { taskId, number } = run;
    this.told(`task ${taskId}: execution ${number}: ${kind} ${key}`);
    if (kind === "effect") {
      this.tried.add(`${taskId}/${key}`);
      const task = this.tasks.get(taskId);
      if (task && isFinal(task))
        this.breaks("one final state", `task ${taskId} is ${task.state}, and its effect ${key} begins`);
    }
    const newest = this.newest.get(taskId) as Run;
    if (newest !== run)
      this.breaks(
        "no overlap",
        `task ${taskId}: execution ${number} in ${run.process} does ${kind} ${key} after execution ${newest.number} in ${newest.process} has begun`,
      );
    if (this.isStored(taskId, kind, key))
      this.breaks("nothing repeated", `task ${taskId}: ${kind} ${key} is stored, and done again`);
  }

  /** Somebody is about to be asked whether an effect happened. `isWell`: of a process, that it lives and could have said. */
  asks({ id, effect }: InDoubt, isWell: (process: string) => boolean): void {
    const intent = this.heads
      .get(id)
      ?.recent.findLast((entry) => entry.kind === "intent" && entry.key === effect);
    if (intent?.kind !== "intent" || intent.fence === undefined || this.tried.has(`${id}/${effect}`)) return;
    const holder = this.holders.get(`${id}/${intent.fence}`);
    if (holder !== undefined && isWell(holder))
      this.breaks("no needless doubt", `task ${id} is in doubt about ${effect}, which ${holder} never began`);
  }

  /** How often an effect was begun, with this time. */
  tries(taskId: string, name: string): number {
    const key = `${taskId}/${name}`;
    const tries = (this.effects.get(key) ?? 0) + 1;
    this.effects.set(key, tries);
    return tries;
  }

  happened(taskId: string, key: string, times: number): void {
    this.told(`task ${taskId}: effect ${key.slice(0, 12)} happens`);
    if (times > 1) this.breaks("nothing repeated", `task ${taskId}: an effect happened ${times} times`);
  }

  charged({ task, name }: Asked, turn: number, usd: number): void {
    const key = `${name}/turn ${turn}#1`;
    this.told(`task ${task}: turn ${key} is asked`);
    if (this.isStored(task, "turn", key))
      this.breaks("nothing repeated", `task ${task}: turn ${key} is stored, and asked again`);
    const document = this.tasks.get(task);
    // Done again from scratch on purpose, it may cost its budget again.
    const budget = document?.epoch === 0 ? this.budgets[document.agent] : undefined;
    const spent = (this.spent.get(task) ?? 0) + usd;
    this.spent.set(task, spent);
    if (budget !== undefined && spent > budget + 1e-9)
      this.breaks("within budget", `task ${task} has cost $${spent.toFixed(5)} of $${budget}`);
  }

  /** Somebody takes a message away. */
  vanishes(queue: string, seq: number): void {
    this.strangers.add(`${queue}/${seq}`);
    this.taken.push({ queue, seq });
  }

  /** How many messages were taken away that no document says anything else of: a report has to name them. */
  get vanished(): number {
    const settledAs = (queue: string, seq: number) =>
      [...this.tasks.values()].flatMap(
        ({ settled }) => settled.find((one) => one.queue === queue && one.seq === seq) ?? [],
      );
    return this.taken.filter(({ queue, seq }) =>
      settledAs(queue, seq).every(({ outcome }) => outcome === "lost"),
    ).length;
  }

  /** A message leaves its stream. */
  left(queue: string, { seq, subject }: KeptMessage, why: string): void {
    this.told(`sequence ${seq} of ${queue} is ${why}`);
    if (this.strangers.delete(`${queue}/${seq}`)) return;
    for (const task of this.tasks.values()) if (isSettled(task, queue, seq)) return;
    this.breaks(
      "settled first",
      `sequence ${seq} of ${queue} (${subject}) is ${why}, and no document settles it`,
    );
  }

  private isStored(taskId: string, kind: string, key: string): boolean {
    const head = this.heads.get(taskId);
    const task = this.tasks.get(taskId);
    if (!head || !task || head.born !== task.createdAt || head.epoch !== task.epoch) return false;
    const stored = kind === "step" ? "step" : "receipt";
    const first = head.count - head.recent.length;
    let since: number | undefined;
    let isThere = false;
    for (const [i, entry] of head.recent.entries()) {
      const began = since ?? first + i;
      if (entry.key === key) {
        since = began;
        isThere ||= entry.kind === stored;
      } else if (entry.kind === "redriven" && since !== undefined && kind !== "effect") {
        if (!entry.forgets.some(([from, to]) => began >= from && began <= to)) continue;
        since = undefined;
        isThere = false;
      }
    }
    return isThere;
  }
}
