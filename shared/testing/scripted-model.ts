import type { Usage } from "../journal/prices.ts";
import type { Model, Turn, TurnRequest } from "../ports/model.ts";
import type { Json, JsonObject } from "../values/json.ts";

/** One answer of the model: a text, or what `asks` makes, or all of it by hand. */
export type ScriptedTurn =
  | string
  | {
      readonly content: readonly JsonObject[];
      readonly stopReason?: string;
      readonly usage?: Partial<Usage>;
    };

export type ModelScript = readonly ScriptedTurn[] | ((request: TurnRequest, count: number) => ScriptedTurn);

/** The model asks for tools: one call, or several at once. */
export function asks(...calls: readonly (readonly [tool: string, input: Json])[]): ScriptedTurn {
  const content = calls.map(([name, input], i) => ({
    type: "tool_use",
    id: `use_${i + 1}_${name}`,
    name,
    input,
  }));
  return { content, stopReason: "tool_use" };
}

export interface ScriptedModel extends Model {
  readonly requests: readonly TurnRequest[];
}

export function scripted(script: ModelScript): ScriptedModel {
  const requests: TurnRequest[] = [];
  return {
    requests,
    turn: async (request): Promise<Turn> => {
      requests.push(structuredClone(request));
      const count = requests.length;
      // By the conversation's own length: a turn that is asked for again is answered alike.
      const place = (request.messages as Json[]).filter(
        (one) => (one as JsonObject).role === "assistant",
      ).length;
      const next = typeof script === "function" ? script(request, count) : script[place];
      if (next === undefined)
        throw new Error(`The script has no turn ${place + 1}: the model was asked more often than it says`);
      const {
        content,
        stopReason = "end_turn",
        usage,
      } = typeof next === "string" ? { content: [{ type: "text", text: next }], usage: undefined } : next;
      return {
        content,
        stopReason,
        model: request.model,
        requestId: `req_${count}`,
        usage: {
          input_tokens: Math.ceil(JSON.stringify(request.messages).length / 4),
          output_tokens: Math.ceil(JSON.stringify(content).length / 4),
          ...usage,
        },
      };
    },
  };
}
