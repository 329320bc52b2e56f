import { PawlError } from "../errors/errors.ts";
import { type Deps, mark } from "../ports/deps.ts";
import type { TaskStore } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import { pause as wait } from "../retry/retry.ts";
import type { Millis } from "../task/document.ts";
import { isJsonObject, type Json } from "../values/json.ts";

/** Nothing new of an agent begins. */
export interface Pause {
  readonly at: Millis;
  /** Who paused it, and by what. */
  readonly by: string;
  /** In their words. */
  readonly why?: string;
}

export const WHY_LIMIT = 300;

const recordOf = (agent: string) => `paused-${agent}`;

/** Since when an agent is paused; undefined while it is not. One read. */
export async function pauseOf(
  store: Pick<TaskStore, "getRecord">,
  agent: string,
): Promise<Pause | undefined> {
  const found = await store.getRecord(recordOf(agent), agent);
  return found && readPause(found.text);
}

/** An agent's own part may be written by anybody who has its identity: what is no pause pauses nothing. */
function readPause(text: string): Pause | undefined {
  let said: Json;
  try {
    said = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  if (!isJsonObject(said)) return undefined;
  const { at, by, why } = said;
  if (typeof at !== "number" || !Number.isSafeInteger(at) || typeof by !== "string") return undefined;
  return {
    at,
    by: by.slice(0, WHY_LIMIT),
    ...(typeof why === "string" && why !== "" && { why: why.slice(0, WHY_LIMIT) }),
  };
}

/** What a change of it came to: how it is now, and how it was. */
export interface PauseChange {
  readonly paused?: Pause;
  readonly before?: Pause;
}

/** Pauses an agent. One that is paused stays as it was paused first: who did, and why. */
export function pauseAgent(deps: Deps, agent: string, why?: string): Promise<PauseChange> {
  const { now: at, by } = mark(deps);
  const said = { at, by, ...(why !== undefined && why !== "" && { why: why.slice(0, WHY_LIMIT) }) };
  return changed(deps, agent, (before) => before ?? said);
}

/** What waits begins again. */
export async function resumeAgent(deps: Deps, agent: string): Promise<PauseChange> {
  const change = await changed(deps, agent, () => undefined);
  // Its function would come in a minute anyway.
  deps.trigger?.(agent);
  return change;
}

/** Two people at once: each writes on what they have seen, so the later one has seen what the other did. */
async function changed(
  deps: Deps,
  agent: string,
  change: (before: Pause | undefined) => Pause | undefined,
): Promise<PauseChange> {
  for (let tries = 1; tries <= policies.counters.tries; tries++) {
    const found = await deps.store.getRecord(recordOf(agent), agent);
    const before = found && readPause(found.text);
    const paused = change(before);
    const told = { ...(paused && { paused }), ...(before && { before }) };
    if (paused === before) return told;
    const text = JSON.stringify(paused ?? {});
    const written = await deps.store.putRecord(recordOf(agent), text, found?.revision, agent);
    if (written.kind === "written") return told;
    await wait(deps, "counters", tries);
  }
  throw new PawlError(
    "store_unavailable",
    `Whether ${agent} is paused is being changed by others. Try again`,
  );
}
