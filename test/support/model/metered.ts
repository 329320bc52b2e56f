import { billOf, countOf, usageOf } from "../../../infra/local/messages/meter.ts";
import { refusalOf } from "../../../infra/local/messages/refusals.ts";
import type { World } from "../../../infra/local/messages/tokens.ts";
import type { Usage } from "../../../shared/journal/usage.ts";
import { ModelError } from "../../../shared/ports/model.ts";
import type { ScriptedModel } from "../../../shared/testing/scripted-model.ts";
import type { JsonObject } from "../../../shared/values/json.ts";

/** What becomes of one request: its answer is heard, or lost though it was paid for, or the API refuses it for now. */
export type Fate = "heard" | "lost" | "busy";

export interface Said {
  readonly fate: Fate;
  readonly content: readonly JsonObject[];
  readonly stopReason: string;
  /** A share of what it may write. */
  readonly length: number;
}

export interface MeteredModel extends ScriptedModel {
  readonly bill: () => number;
  readonly counts: () => number;
}

/** The local model's bill, without its server: for many conversations in a moment. `before`: the world while tokens are counted. */
export function meteredModel(
  say: (request: JsonObject) => Said,
  world: World,
  before: World,
  countFails: () => boolean,
): MeteredModel {
  const requests: JsonObject[] = [];
  let bill = 0;
  let counts = 0;
  const refused = (request: JsonObject) => {
    const why = refusalOf(request, [], world);
    if (why) throw new ModelError("model_invalid", why, { isFree: true });
  };
  const busy = () => new ModelError("model_unavailable", "529", { isFree: true });
  return {
    requests: requests as never,
    begins: () => {},
    bill: () => bill,
    counts: () => counts,
    count: async (request) => {
      counts++;
      refused(request);
      if (countFails()) throw busy();
      return countOf(request, before).input_tokens;
    },
    turn: async (request) => {
      requests.push(structuredClone(request));
      refused(request);
      const { fate, content, stopReason, length } = say(request);
      if (fate === "busy") throw busy();
      const usage = {
        ...(usageOf(request, content, world) as unknown as Usage),
        output_tokens: Math.round(request.max_tokens * length),
      };
      bill += billOf(request.model, usage);
      if (fate === "lost") throw new ModelError("model_unavailable", "cut", { isFree: false });
      return { content, stopReason, usage, model: request.model };
    },
  };
}
