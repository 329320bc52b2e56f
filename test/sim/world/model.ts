import { prices } from "../../../shared/journal/prices.ts";
import { costOf } from "../../../shared/journal/usage.ts";
import { type Model, ModelError, type Turn, type TurnRequest } from "../../../shared/ports/model.ts";
import type { Json, JsonObject } from "../../../shared/values/json.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { Time } from "./time.ts";

/** What a generated handler says in its prompt, so that the model knows what to answer, and to whom. */
export interface Asked {
  readonly task: string;
  readonly name: string;
  readonly turns: number;
  readonly tools: "none" | "read-only" | "effects";
}

/** Told of every turn that reached the API, with what it costs whoever hears the answer. */
export type Metered = (asked: Asked, turn: number, usd: number, isPaid: boolean) => void;

/** A model whose meter is its own: what it charged is known whatever became of the answers. */
export function simulatedModel(time: Time, random: Random, process: Process, metered: Metered): Model {
  let answers = 0;
  return {
    count: async (request) => JSON.stringify(request).length,
    turn: (request, signal) =>
      new Promise<Turn>((resolve, reject) => {
        const asked = askedBy(request);
        const place = (request.messages as Json[]).filter(
          (one) => (one as JsonObject).role === "assistant",
        ).length;
        const give = (ms: number, run: () => void) => void time.at(time.now + ms, () => process.wake(run));
        const fail = (why: string, isFree: boolean) =>
          reject(new ModelError("model_unavailable", why, { isFree }));
        const aborted = () => fail("The call was aborted", false);
        if (signal.aborted) return aborted();
        signal.addEventListener("abort", aborted, { once: true });
        const fate = random.int(100);
        time.at(time.now + random.between(1, 30), () => {
          const isFree = fate < 6;
          // No two answers have the same ids.
          const id = `${process.name}-${++answers}`;
          const turn = answerTo(request, asked, { place, id }, random.pick(LENGTHS));
          const { usd } = costOf(turn.usage, request.model, prices);
          metered(asked, place + 1, isFree ? 0 : usd, !isFree);
          if (isFree) give(10, () => fail("429", true));
          else if (fate < 12) give(random.between(10, 3_000), () => fail("the stream was cut", false));
          else give(random.pick([50, 900, 6_000, 12_000]), () => resolve(turn));
        });
      }),
  };
}

function askedBy(request: TurnRequest): Asked {
  const [first] = request.messages as JsonObject[];
  return JSON.parse(String(first?.content)) as Asked;
}

/** Of answers, in tokens: little, and all that was asked for. */
const LENGTHS = [40, 40, 250, 500] as const;

function answerTo(
  request: TurnRequest,
  { turns, tools, name }: Asked,
  { place, id }: { place: number; id: string },
  output_tokens: number,
): Turn {
  const isLast = place + 1 >= turns || tools === "none";
  const content: JsonObject[] = isLast
    ? [{ type: "text", text: "done" }]
    : [
        {
          type: "tool_use",
          id: `use-${name}-${id}`,
          name: "look",
          input: { place, use: `use-${name}-${id}` },
        },
      ];
  return {
    content,
    stopReason: isLast ? "end_turn" : "tool_use",
    model: request.model,
    usage: {
      input_tokens: Math.ceil(JSON.stringify(request.messages).length / 4),
      output_tokens,
    },
  };
}
