import { fork } from "node:child_process";
import { once } from "node:events";
import type { Plan } from "./plan/plan.ts";
import type { Played } from "./play.ts";

/** What a process is sent to play one plan, and to tell its story: it answers with how that came out. */
export interface Told {
  readonly plan: Plan;
}

export interface Player extends AsyncDisposable {
  /** One after the other. */
  play(plan: Plan): Promise<Played>;
}

/** Plays plans in a process of its own: whoever simulates takes the timers of all that runs in a process. */
export function startPlayer(): Player {
  const child = fork(new URL("player.ts", import.meta.url), { serialization: "advanced" });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`The process that plays plans ended with ${code}`);
  });
  ended.catch(() => {});
  return {
    play: async (plan) => {
      const played = once(child, "message");
      child.send({ plan } satisfies Told);
      const [answer] = (await Promise.race([played, ended])) as [Played];
      return answer;
    },
    [Symbol.asyncDispose]: async () => {
      child.disconnect();
      await ended.catch(() => {});
    },
  };
}
