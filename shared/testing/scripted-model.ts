import type { Usage } from "../journal/usage.ts";
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

/** What a model answers: a list, one for each turn; or a function of the request and of how many there were, with this one. */
export type ModelScript = readonly ScriptedTurn[] | ((request: TurnRequest, count: number) => ScriptedTurn);

/** An answer in which the model asks for tools: `asks(["lookup", { id: 7 }])`, or several at once. */
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
  /** A handler starts, whose journal has these answers: the others are given in order. */
  begins(stored: ReadonlySet<number>): void;
}

/** The number of an answer in its script, by the request id that it was given with. */
export function answerNumber(requestId: string | undefined): number | undefined {
  const number = /^req_(\d+)$/.exec(requestId ?? "")?.[1];
  return number === undefined ? undefined : Number(number);
}

const tokensOf = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4);

export function scripted(script: ModelScript): ScriptedModel {
  const requests: TurnRequest[] = [];
  let given = new Set<number>();
  /** The first that is neither stored nor given to this start: a turn whose answer was lost gets it again. */
  const next = (): number => {
    let number = 1;
    while (given.has(number)) number++;
    given.add(number);
    return number;
  };
  return {
    requests,
    begins: (stored) => {
      given = new Set(stored);
    },
    count: async (request) => tokensOf(request.messages),
    turn: async (request): Promise<Turn> => {
      requests.push(structuredClone(request));
      const number = next();
      const said = typeof script === "function" ? script(request, requests.length) : script[number - 1];
      if (said === undefined)
        throw new Error(`The script has no turn ${number}: the model was asked more often than it says`);
      const {
        content,
        stopReason = "end_turn",
        usage,
      } = typeof said === "string" ? { content: [{ type: "text", text: said }], usage: undefined } : said;
      return {
        content,
        stopReason,
        model: request.model,
        requestId: `req_${number}`,
        usage: {
          input_tokens: tokensOf(request.messages),
          output_tokens: tokensOf(content),
          ...usage,
        },
      };
    },
  };
}
