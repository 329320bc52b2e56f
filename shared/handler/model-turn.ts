import { messageOf, PawlError, Retry } from "../errors/errors.ts";
import type { Asked } from "../journal/asked.ts";
import { budgetOf } from "../journal/budget.ts";
import { costOf, priceOf, worstCase } from "../journal/prices.ts";
import type { Call } from "../journal/trail.ts";
import { type Model, ModelError, type Turn, type TurnRequest } from "../ports/model.ts";
import { policies } from "../retry/policies.ts";
import { pauseAfter } from "../retry/retry.ts";
import { lacksForTurn } from "../runner/invocation.ts";
import { byteLength } from "../values/json.ts";
import type { Scene } from "./scene.ts";

/** What is asked for beyond this frees the lane meanwhile. */
const LONGEST_WAIT = 60_000;

type Given = { asked?: Asked };

/**
 * One turn of a model, paid once. Its intent says what was set aside: dead before the receipt, the next execution asks
 * again, and what the lost answer may have cost stays charged to the budget.
 */
export function turnsOf(
  scene: Scene,
): (
  name: string,
  request: TurnRequest,
  first: number | undefined,
  asked: () => Given,
) => Promise<{ turn: Turn; key: string }> {
  const { agent, journal, signal, deps, through, park } = scene;
  const book = budgetOf(journal.listed(), agent.limits.budgetUsd);

  return async (name, request, first, asked) => {
    const model = modelOf(deps.model);
    const price = priceOf(request.model, deps.settings.prices);
    if (!price && agent.limits.budgetUsd !== undefined)
      throw new PawlError(
        "price_unknown",
        `The price of ${request.model} is not known, and the agent has a budget`,
      );
    const text = JSON.stringify(request);
    const most = worstCase(byteLength(text), request.max_tokens, text.includes('"cache_control"'), price);
    const go = async ({ key, at, alone, known }: Call): Promise<{ turn: Turn; key: string }> => {
      if (known?.state === "done") return { turn: (await journal.read(known.kept)) as unknown as Turn, key };
      for (let failures = 1; ; failures++) {
        signal.throwIfAborted();
        const lacks = lacksForTurn(deps.invocation);
        if (lacks) return park({ kind: "handOff", ...lacks, ended: true });
        book.reserve(most);
        const given = known || failures > 1 ? {} : asked();
        const again = (known || failures > 1) && ({ again: true } as const);
        await journal.append({
          kind: "intent",
          of: "turn",
          key,
          at,
          alone,
          reserved: most,
          ...again,
          ...given,
        });
        try {
          const turn = await model.turn(request, signal);
          const cost = costOf(turn.usage, price);
          const { kept } = await journal.keep(turn, `Model turn ${key}`);
          await journal.append({ kind: "receipt", key, cost, ...kept });
          book.charge(most, cost);
          return { turn, key };
        } catch (error) {
          if (!(error instanceof ModelError)) throw error;
          const why = messageOf(error).slice(0, 500);
          await journal.append({ kind: error.isFree ? "undone" : "unsure", key, why });
          if (error.isFree) book.charge(most, undefined);
          signal.throwIfAborted();
          if (error.code !== "model_unavailable") throw error;
          const wait = error.after ?? pauseAfter("modelTurn", failures);
          if (wait > LONGEST_WAIT) throw new Retry(why, wait, { cause: error });
          if (failures >= policies.modelTurn.tries) throw error;
          deps.log("warn", "model.retry", { task: scene.task.id, reason: why, in: wait });
          await deps.clock.sleep(wait, signal);
        }
      }
    };
    // A conversation of the same name again is only safe to tell apart where nothing runs beside it.
    return through("turn", name, go, { inner: first === undefined, repeats: (first ?? 1) > 1 });
  };
}

function modelOf(model: Model | undefined): Model {
  if (model) return model;
  throw new PawlError("model_invalid", "There is no model to ask: ANTHROPIC_API_KEY is not set");
}
