import type { Random } from "../world/random.ts";

/** What a plan is mostly about: one of a theme meets in hundreds of seeds what others meet in hundred thousands. */
const themes = {
  anything: 15,
  /** A message comes to a second runner while the first is cut off, or frozen, and may still act. */
  takeover: 30,
  /** A request of a process that has died arrives long after. */
  late: 14,
  /** A runner is told to stop, or a task to cancel, and its handler is slow to hear it. */
  stop: 8,
  invocations: 12,
  /** Turns of a model on a small budget, whose answers are lost, and whose holders die. */
  money: 5,
  /** A store of several copies, one of which does not know that the others have gone on. */
  copies: 16,
} as const;
export type Theme = keyof typeof themes;

export function themeOf(chance: Random): Theme {
  let roll = chance.int(100);
  for (const [theme, share] of Object.entries(themes)) {
    roll -= share;
    if (roll < 0) return theme as Theme;
  }
  return "anything";
}
