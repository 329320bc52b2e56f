import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Agent, type AgentContext, defineAgent, Fatal, Retry, type Tool } from "../../shared/agent.ts";
import { isPawlError } from "../../shared/errors/errors.ts";
import { GRACE, type Oracle, type Run } from "./oracle.ts";
import type { AgentPlan } from "./plan/plan.ts";
import type { Action, Program } from "./plan/program.ts";
import type { Outside } from "./world/outside.ts";
import type { Process } from "./world/process.ts";

const MODEL = "claude-haiku-4-5";
/** Whoever comes next waits for longer than this after code was told to stop. */
const LONGEST_LINGERING = 15_000;
/** Of simulated runners: two thirds of the longest ack_wait. */
const LONGEST_LEASE = 20_000;

/** Where handlers of one process run. */
export interface Stage {
  readonly process: Process;
  readonly outside: Outside;
  readonly oracle: Oracle;
}

/** An agent whose handler does what a program says, and tells the oracle what it really does. */
export function agentOf(stage: Stage, plan: AgentPlan, version: number): Agent {
  const { attempts, lanes, order, budgetUsd, timeout } = plan;
  return defineAgent({
    version,
    limits: {
      timeout: `${timeout}ms`,
      attempts,
      lanes,
      order,
      ...(budgetUsd !== undefined && { budgetUsd }),
    },
    run: async (context) => {
      const run = stage.oracle.begins(context.id, stage.process);
      await new Player(stage, run, context as AgentContext<unknown>).play(plan.program);
      return { done: context.id };
    },
  });
}

/** Plays a program in one execution. Like a careful author's code, it asks its signal before it does anything. */
class Player {
  private readonly stage: Stage;
  private readonly run: Run;
  private readonly context: AgentContext<unknown>;
  private readonly ordinals = new Map<string, number>();

  constructor(stage: Stage, run: Run, context: AgentContext<unknown>) {
    this.stage = stage;
    this.run = run;
    this.context = context;
  }

  async play(program: Program): Promise<void> {
    for (const action of program) await this.act(action);
  }

  private async act(action: Action): Promise<void> {
    const { context } = this;
    switch (action.do) {
      case "step": {
        const key = this.keyOf(action.name);
        await context.step(action.name, async () => {
          await this.busy("step", key, action.ms);
          if (context.attempt <= action.failsUntil) throw new Error(`${key} fails`);
          return key;
        });
        return;
      }
      case "effect":
        await this.effect(action);
        return;
      case "llm":
        await this.ask(action);
        return;
      case "work":
        await this.busy("work", action.name, action.ms);
        return;
      case "ignore":
        await this.ignore(action.name, action.ms);
        return;
      case "hang":
        if (context.attempt > action.untilAttempt) return;
        await this.stage.process.clock.sleep(1e9, action.heeds ? context.signal : undefined);
        context.signal.throwIfAborted();
        return;
      case "crash":
        if (this.stage.oracle.tries(context.id, action.name) > action.times) return;
        this.stage.process.die();
        return new Promise(() => {});
      case "sleep":
        await context.sleep(`${action.ms}ms`);
        return;
      case "approval": {
        const { timeout } = action;
        const asked = context.approval(action.name, timeout === undefined ? {} : { timeout: `${timeout}ms` });
        await (action.catches ? asked.catch(() => {}) : asked);
        return;
      }
      case "event": {
        const { timeout } = action;
        await context.waitFor(action.name, timeout === undefined ? {} : { timeout: `${timeout}ms` });
        return;
      }
      case "child": {
        const child = await context.submit("child", { of: context.id }, { key: action.key });
        if (action.awaits) await child.result();
        return;
      }
      case "throw":
        if (context.attempt > action.untilAttempt) return;
        throw action.fatal ? new Fatal("as planned") : new Error("as planned");
      case "nested": {
        const key = this.keyOf(action.name);
        await context.step(action.name, async () => {
          this.stage.oracle.acts(this.run, "step", key);
          await this.play(action.body);
          return key;
        });
        return;
      }
      case "loop":
        for (let i = 0; i < action.times; i++) await this.play(action.body);
        return;
      case "parallel":
        await this.parallel(action);
        return;
      case "version":
        await this.play(context.version >= 2 ? action.from2 : action.before);
        return;
      default:
        action satisfies never;
    }
  }

  private async parallel({ how, branches }: Extract<Action, { do: "parallel" }>): Promise<void> {
    const all = branches.map((branch) => this.play(branch));
    if (how === "all") await Promise.all(all);
    else if (how === "race") await Promise.race(all);
    else {
      const ended = await Promise.allSettled(all);
      const failed = ended.find((one) => one.status === "rejected");
      if (failed) throw failed.reason;
    }
  }

  /** Something that takes its time and can be seen from outside, when it begins and when it ends. */
  private async busy(kind: "step" | "work", key: string, ms: number): Promise<void> {
    const { oracle, process } = this.stage;
    // A step that may not begin is not begun: its author need not ask.
    if (kind === "work") this.context.signal.throwIfAborted();
    oracle.acts(this.run, kind, key);
    if (ms === 0) return;
    await process.clock.sleep(ms, this.context.signal);
    this.context.signal.throwIfAborted();
    oracle.acts(this.run, kind, `${key}, its end`);
  }

  /** Told to stop it goes on for a while; whoever comes next must wait for that. Nobody could for one whose lease is lost. */
  private async ignore(name: string, ms: number): Promise<void> {
    const { oracle, process } = this.stage;
    const { signal } = this.context;
    signal.throwIfAborted();
    let toldAt: number | undefined;
    const listen = () => {
      toldAt = process.clock.monotonic();
    };
    signal.addEventListener("abort", listen, { once: true });
    const begun = process.clock.now();
    await process.clock.sleep(ms);
    // Frozen for as long as a lease it has lost that, also where its time was up at the same moment: the signal says one of both.
    const wasFrozen = process.clock.now() - begun - ms >= LONGEST_LEASE;
    const isLost = signal.aborted && (wasFrozen || isPawlError(signal.reason, "lease_lost"));
    // Also where it was told to stop for another reason first, and its task came to wait by that.
    const isBeside = oracle.lingers(this.run) || isPawlError(signal.reason, "execution_over");
    const most = isBeside ? GRACE : LONGEST_LINGERING;
    const isLate = toldAt !== undefined && process.clock.monotonic() - toldAt >= most;
    if (!isLost && !isLate) oracle.acts(this.run, "work", name);
  }

  private async effect(action: Extract<Action, { do: "effect" }>): Promise<void> {
    const { oracle, outside, process } = this.stage;
    const { id, signal } = this.context;
    const { name, throws, honoursKey, verify, ms } = action;
    await this.context.effect(name, {
      honoursKey,
      run: async (key) => {
        oracle.acts(this.run, "effect", `${name}#1`);
        const isFirst = oracle.tries(id, name) === 1;
        if (isFirst && throws === "retry") throw new Retry("not now", 1_000);
        if (isFirst && throws === "before it happened") throw new Error("it did not happen");
        const receipt = await outside.perform(process, id, key, honoursKey);
        if (ms > 0) await process.clock.sleep(ms, signal);
        if (isFirst && throws === "after it happened") throw new Error("it happened");
        return receipt;
      },
      ...(verify && { verify: (key: string) => outside.look(process, key) }),
    });
  }

  private async ask({ name, turns, tools }: Extract<Action, { do: "llm" }>): Promise<void> {
    const { id } = this.context;
    const prompt = JSON.stringify({ task: id, name, turns, tools });
    await this.context.llm(name, {
      model: MODEL,
      prompt,
      maxTokens: 500,
      ...(tools !== "none" && { tools: [this.tool(name, tools === "read-only")] }),
    });
  }

  private tool(of: string, readOnly: boolean): Tool {
    const { oracle, outside, process } = this.stage;
    const { id } = this.context;
    const anything: StandardSchemaV1 = {
      "~standard": { version: 1, vendor: "sim", validate: (value) => ({ value }) },
    };
    return {
      name: "look",
      description: "looks",
      input: anything,
      inputSchema: { type: "object" },
      readOnly,
      run: async ({ place, use }: { place: number; use: string }, key: string) => {
        oracle.acts(this.run, readOnly ? "step" : "effect", `${of}/look/${use}#1`);
        if (!readOnly) oracle.uses(id, of, place, use);
        return readOnly ? "seen" : outside.perform(process, id, key, false);
      },
      verify: (_: unknown, key: string) => outside.look(process, key),
    };
  }

  private keyOf(name: string): string {
    const ordinal = (this.ordinals.get(name) ?? 0) + 1;
    this.ordinals.set(name, ordinal);
    return `${name}#${ordinal}`;
  }
}
