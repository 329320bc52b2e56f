import type { Reply, Script } from "../../infra/local/model.ts";
import type { JsonObject } from "../../shared/values/json.ts";
import type { Random } from "./faults/plan.ts";

export const AGENT = "errand";
/** So many tasks run at once. */
export const LANES = 16;

/** What one turn of the stand-in costs, so that what was paid twice can be told. */
export const TURN_TOKENS = { input_tokens: 200, output_tokens: 50 };

/** The input of one errand, from the plan's numbers. Some mails can't be asked about: a kill in them is a doubt. */
export function inputOf(random: Random, places: { readonly board: string; readonly notes: string }) {
  const kind = random();
  const mail = kind < 0.4 ? "keyed" : kind < 0.8 ? "verified" : "blind";
  return { ...places, ms: Math.floor(20 + random() * 180), mail } satisfies JsonObject;
}

/** What a request to the stand-in is about. */
export interface Asked {
  readonly id: string;
  readonly run: string;
  readonly turn: number;
}

export function askedIn(body: JsonObject): Asked {
  const messages = body.messages as { content: string }[];
  const { user_id: run } = body.metadata as { user_id: string };
  return { id: messages[0]?.content as string, run, turn: (messages.length - 1) / 2 + 1 };
}

/** The first turn asks for a post, the second names the request that brought it: another one would say something else. */
export function modelScript(hear: (asked: Asked) => void): Script {
  return (body, count): Reply => {
    const asked = askedIn(body);
    hear(asked);
    const how = { delay: 30 + Math.random() * 120, usage: TURN_TOKENS };
    if (asked.turn > 1) return { ...how, content: [{ type: "text", text: `said by request ${count}` }] };
    const use = { type: "tool_use", id: "use_1", name: "post", input: { text: `for ${asked.id}` } };
    return { ...how, content: [use], stopReason: "tool_use" };
  };
}
