import { messageOf } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { sealed } from "../../shared/seal/sealed.ts";
import { makeSettings, type Settings } from "../../shared/settings/settings.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { Oracle } from "./oracle.ts";
import type { Plan, ProcessFault } from "./plan/plan.ts";
import type { Broken } from "./promises.ts";
import { Broker } from "./world/broker.ts";
import { simulatedBus } from "./world/bus.ts";
import type { Globals } from "./world/globals.ts";
import { Network } from "./world/network.ts";
import { Outside } from "./world/outside.ts";
import { type Mishap, Process } from "./world/process.ts";
import { random } from "./world/random.ts";
import { quickSealer } from "./world/sealer.ts";
import { Copies, simulatedStore } from "./world/store.ts";
import { Time } from "./world/time.ts";

export const BEGIN = Date.UTC(2030, 0, 7);
const LANES = { child: 1 };

/** A line of a simulation's story. */
export interface Line {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/** One world, in which a plan comes true. */
export class Simulation {
  readonly plan: Plan;
  readonly time = new Time(BEGIN);
  readonly settings: Settings;
  readonly network: Network;
  readonly broker = new Broker();
  readonly oracle: Oracle;
  readonly outside: Outside;
  readonly story: Line[] = [];
  readonly copies: Copies | undefined;
  /** What reports have found so far. */
  readonly named = new Set<string>();
  /** How many things happened. */
  steps = 0;
  isCalm = false;
  calmSince = Number.POSITIVE_INFINITY;
  private readonly isTold: boolean;
  private readonly globals: Globals;
  private readonly documents;
  private readonly lives = new Map<string, number>();
  private readonly alive = new Set<Process>();
  private hasRun = false;
  /** Faults that have not come true yet, and after how many requests they will. */
  private readonly left: (ProcessFault & { left: number })[];

  constructor(plan: Plan, globals: Globals, isTold: boolean) {
    this.plan = plan;
    this.left = plan.faults.map((fault) => ({ ...fault, left: fault.after }));
    this.globals = globals;
    this.isTold = isTold;
    this.settings = makeSettings({
      namespace: "sim",
      ackWait: plan.ackWait,
      ...(plan.maxDeliver !== undefined && { maxDeliver: plan.maxDeliver }),
    });
    this.network = new Network(this.time, this.settings.requestTimeout, (process, what) =>
      this.tell(process.name, what),
    );
    this.network.losses = plan.losses;
    this.oracle = new Oracle(plan, (what) => this.tell("world", what));
    this.outside = new Outside(this.time, random(plan.seed, "outside"), (...happened) =>
      this.oracle.happened(...happened),
    );
    this.copies = plan.isReplicated ? new Copies() : undefined;
    this.documents = memoryStore({
      now: () => Math.floor(this.time.now),
      written: (stored) => {
        if ("head" in stored) return this.oracle.journaled(stored.head);
        this.copies?.written(this.time.now, stored);
        this.oracle.written(stored.task);
        const last = stored.task.history.at(-1);
        this.tell(
          "store",
          `task ${stored.task.id}: ${last?.event} by ${last?.by}: ${stored.task.state}, fence ${stored.task.fence}`,
        );
      },
    });
    // Every deploy makes sure that the server's word is captured.
    this.broker.advisoriesSince = BEGIN;
    globals.use(random(plan.seed, "code"));
  }

  get broken(): Broken | undefined {
    return this.oracle.broken;
  }

  tell(who: string, what: string): void {
    if (this.isTold) this.story.push({ at: this.time.now - BEGIN, who, what });
  }

  /** Lets things happen until `isOver`, a promise is broken, or so much time has passed. False when nothing ended it. */
  async run(isOver: () => boolean, forMs: number): Promise<boolean> {
    const until = this.time.now + forMs;
    for (;;) {
      if (this.broken || isOver()) return true;
      if (!this.time.step(until)) return false;
      this.steps++;
      if (this.hasRun) {
        this.hasRun = false;
        await this.globals.settle();
      }
    }
  }

  /** A new life of a process. */
  begin(slot: string, skew = 0): Process {
    const life = this.lives.get(slot) ?? 0;
    this.lives.set(slot, life + 1);
    const name = `${slot}.${life + 1}`;
    const process = new Process({
      name,
      time: this.time,
      random: random(this.plan.seed, name),
      skew,
      mishapsAt: (what) => this.mishapsAt(slot, what),
      ran: () => {
        this.hasRun = true;
      },
      told: (what) => this.tell(name, what),
    });
    this.alive.add(process);
    return process;
  }

  /** What the plan has for this request: each fault comes true once, at the so-manieth request that it is meant for. */
  private mishapsAt(slot: string, what: string): readonly Mishap[] {
    if (this.isCalm) return [];
    return this.left.flatMap((fault) => {
      const isMeant = fault.process === "any runner" ? /^r\d/.test(slot) : fault.process === slot;
      if (!isMeant || !what.startsWith(fault.what) || fault.left-- > 0) return [];
      this.left.splice(this.left.indexOf(fault), 1);
      return [fault.mishap];
    });
  }

  depsOf(process: Process, more: Partial<Deps> = {}): Deps {
    const { time, network, broker, settings, documents, copies, oracle } = this;
    const left = (stream: { name: string }, message: Parameters<Oracle["left"]>[1], why: string) =>
      oracle.left(stream.name, message, why);
    const lanes = this.lanesOf("main");
    const store = simulatedStore({ time, network, documents, ...(copies && { copies }) }, process);
    return {
      store: sealed(store, quickSealer, () => {}),
      bus: simulatedBus({ time, network, broker, settings, left }, process),
      clock: process.clock,
      log: this.isTold
        ? (level, event, fields) =>
            this.tell(process.name, `${level} ${event} ${JSON.stringify(fields ?? {})}`)
        : () => {},
      settings,
      runner: process.name,
      lanesOf: (agent) => (agent === "main" ? lanes : this.lanesOf(agent)),
      meter: { count: () => {}, flush: async () => {} },
      sealer: quickSealer,
      ...more,
    };
  }

  lanesOf(agent: string): number | undefined {
    const { lanes, lanesLater = lanes } = this.plan.agents.main;
    if (agent === "main") return this.isCalm ? lanesLater : lanes;
    return agent === "child" ? LANES.child : undefined;
  }

  /** Runs `work` in a process until it ends or dies, then calls back. What it throws is no accident: functions fail. */
  live(process: Process, work: (process: Process) => Promise<unknown>, ended: () => void): void {
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      // What it has left behind ends with it.
      process.isDead = true;
      this.alive.delete(process);
      ended();
    };
    void work(process).then(
      () => over(),
      (error: unknown) => {
        this.tell(process.name, `ends: ${messageOf(error)}`);
        if (!(error instanceof Error) || !("code" in error) || error.name === "TypeError")
          this.oracle.breaks(
            "no accident",
            `${process.name}: ${error instanceof Error ? error.stack : String(error)}`,
          );
        over();
      },
    );
    process.died = over;
    if (process.isDead) over();
  }

  /** Whether the process lives, and could say what it knows. */
  isWell(name: string): boolean {
    const process = [...this.alive].find((one) => one.name === name);
    return process !== undefined && !process.isFrozen && !process.isCutForGood;
  }

  /** Whether a runner is cut off, and will be for good. */
  get isShort(): boolean {
    return [...this.alive].some((process) => process.isCutForGood);
  }

  /** Nothing goes wrong any more. */
  calm(): void {
    if (this.isCalm) return;
    this.isCalm = true;
    this.calmSince = this.time.now;
    this.tell("world", "is calm from now on");
    this.network.losses = 0;
    this.network.isUp.bus = true;
    this.network.isUp.store = true;
    for (const process of this.alive) process.heal();
    // Soon the newest version is everywhere.
    if (this.plan.agents.main.lanesLater === undefined) return;
    for (const process of this.alive) process.wake(() => process.stop.abort(new Error("told to stop")));
  }
}
