import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { type AgentContext, Fatal } from "../../../../shared/agent.ts";

/** How often work shows that it goes on, in milliseconds. */
const TICK = 25;

const name = z.string();
const ms = z.number();

/** Of the frugal one: for one turn of its model and not for two. */
export const BUDGET = 0.02;

/** What a drill has its handler do, one after the other. */
const act = z.discriminatedUnion("do", [
  z.object({ do: z.literal("step"), name, ms }),
  z.object({ do: z.literal("turn"), name }),
  /** `how`: what its receiver or author can say after a crash; blind: nothing. */
  z.object({ do: z.literal("effect"), name, how: z.enum(["keyed", "verified", "blind"]) }),
  z.object({ do: z.literal("approval"), name }),
  /** Kills its own process. */
  z.object({ do: z.literal("die") }),
  /** Fails for good, until its receiver has been told that it is mended. */
  z.object({ do: z.literal("fail") }),
  /** Works outside of the journal, and goes on for that long after it was told to stop; shorter once it is mended. */
  z.object({ do: z.literal("linger"), most: ms, ms }),
]);

/** What the drill posts to the receiver when the cause of a task's trouble is gone. */
export const MENDED = "mended";

export const errand = z.object({ board: z.string(), notes: z.string(), acts: z.array(act) });

export type Act = z.infer<typeof act>;
export type Errand = z.infer<typeof errand>;

/**
 * Everything that it does is seen outside of Pawl: starts, work and ends in a file, effects by their receiver, turns by the
 * model's stand-in, each with the execution that did it. `at` is the moment before it looked at its signal.
 */
export async function runErrand(context: AgentContext<Errand>): Promise<{ by: string; done: string[] }> {
  const { id, input, step, effect, llm, approval, signal } = context;
  const run = `${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  const write = (at: number, what: string, deed?: string) =>
    appendFileSync(input.notes, `${JSON.stringify({ at, id, run, pid: process.pid, what, deed })}\n`);
  const note = (what: string, deed?: string) => {
    const at = Date.now();
    signal.throwIfAborted();
    write(at, what, deed);
  };
  const work = async (deed: string, length: number) => {
    note("act", deed);
    for (let left = length; left > 0; left -= TICK) {
      await sleep(Math.min(TICK, left), undefined, { signal });
      note("act", `${deed} goes on`);
    }
    return `${deed} by ${run}`;
  };
  const place = (key: string) => `${input.board}/${id}/${key}`;
  const look = async (key: string) => {
    const { ok } = await fetch(place(key), { signal });
    return ok ? { status: 200, by: "verify" } : undefined;
  };
  const post = async (deed: string, key: string) => {
    const at = Date.now();
    signal.throwIfAborted();
    const body = JSON.stringify({ deed, run, at });
    const { status } = await fetch(place(key), { method: "POST", body, signal });
    return { status, by: run };
  };
  const done: string[] = [];
  const perform = async (one: Act): Promise<unknown> => {
    switch (one.do) {
      case "step":
        return step(one.name, () => work(one.name, one.ms));
      case "turn": {
        const parameters = { metadata: { user_id: `${run} ${one.name}` } };
        return llm(one.name, { model: "claude-sonnet-5-5", prompt: id, maxTokens: 1_000, parameters });
      }
      case "effect":
        return effect(one.name, {
          run: (key) => post(one.name, key),
          ...(one.how !== "blind" && { verify: look }),
          honoursKey: one.how === "keyed",
        });
      case "approval":
        return approval(one.name, { summary: "A drill asks" });
      case "die":
        return process.kill(process.pid, "SIGKILL");
      case "fail":
        if ((await look(MENDED)) === undefined) throw new Fatal("The drill has it fail here");
        return undefined;
      case "linger": {
        // Deaf to its signal for a while: what code does that nobody can stop.
        const { most } = (await look(MENDED)) === undefined ? one : { most: 500 };
        note("act", "linger");
        for (let until = Date.now() + most; ; write(Date.now(), "act", "linger goes on")) {
          await sleep(TICK);
          if (signal.aborted) until = Math.min(until, Date.now() + one.ms);
          if (Date.now() >= until) return undefined;
        }
      }
      default:
        return one satisfies never;
    }
  };

  note("start");
  for (const one of input.acts) {
    await perform(one);
    done.push("name" in one ? one.name : one.do);
  }
  note("end");
  return { by: run, done };
}
