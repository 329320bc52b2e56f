import { messageOf, PawlError, Retry } from "../errors/errors.ts";
import { type Asked, askedHashOf } from "../journal/asked.ts";
import { checkBounded, mostOf, shapeOf } from "../journal/bound.ts";
import { type Budget, budgetOf } from "../journal/budget.ts";
import type { Cost } from "../journal/cost.ts";
import { priceOf } from "../journal/prices.ts";
import type { Call } from "../journal/trail.ts";
import { costOf } from "../journal/usage.ts";
import { type Model, ModelError, spokenIn, type Turn, type TurnRequest } from "../ports/model.ts";
import type { CallTrace } from "../ports/trace.ts";
import { policies } from "../retry/policies.ts";
import { pauseAfter } from "../retry/retry.ts";
import { lacksForTurn } from "../runner/invocation.ts";
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
  const { prices } = deps.settings;

  return async (name, request, first, asked) => {
    const model = modelOf(deps.model);
    const go = async (
      { key, at, alone, known }: Call,
      trace?: CallTrace,
    ): Promise<{ turn: Turn; key: string }> => {
      if (known?.state === "done") return { turn: (await journal.read(known.kept)) as unknown as Turn, key };
      const bound = boundOf(scene, model, book, request);
      let isPaidAgain = known !== undefined && known.state !== "undone";
      for (let failures = 1; ; failures++) {
        signal.throwIfAborted();
        const lacks = lacksForTurn(deps.invocation);
        if (lacks) return park({ kind: "handOff", ...lacks, ended: true });
        let reserved: Cost | undefined;
        try {
          const { most, why } = await bound();
          signal.throwIfAborted();
          book.reserve(most, why);
          const given = known || failures > 1 ? {} : asked();
          deps.tells?.listen(scene.task);
          const again = (known || failures > 1) && ({ again: true } as const);
          await journal.append({
            kind: "intent",
            of: "turn",
            key,
            at,
            alone,
            reserved: most,
            askedHash: askedHashOf(request),
            ...again,
            ...given,
          });
          reserved = most;
          if (signal.aborted) {
            await journal.append({ kind: "undone", key, why: "aborted before it was asked" });
            throw signal.reason;
          }
          trace?.asked(request, isPaidAgain);
          const turn = await aloud(scene, key, (begun) => model.turn(request, signal, begun));
          const cost = costOf(turn.usage, request.model, prices);
          trace?.answered(turn, cost);
          if (cost.usd > most.usd + 1e-9)
            deps.log("error", "model.above-bound", {
              task: scene.task.id,
              key,
              usd: cost.usd,
              most: most.usd,
            });
          const { kept } = await journal.keep(turn, `Model turn ${key}`);
          await journal.append({ kind: "receipt", key, cost, ...kept });
          book.charge(most, cost);
          return { turn, key };
        } catch (error) {
          if (!(error instanceof ModelError)) throw error;
          const why = messageOf(error).slice(0, 500);
          // A count that failed was asked for before anything was set aside.
          if (reserved) {
            await journal.append({ kind: error.isFree ? "undone" : "unsure", key, why });
            if (error.isFree) book.charge(reserved, undefined);
            isPaidAgain ||= !error.isFree;
          }
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
    return through("turn", name, go, { inner: first === undefined, repeats: (first ?? 1) > 1, request });
  };
}

/**
 * Lets whoever listens read a turn while it runs: as it will be stored, and only while the lease is held, so that a process
 * that was frozen tells nothing of its own when it wakes.
 */
async function aloud(
  { deps, task, signal }: Pick<Scene, "deps" | "task" | "signal">,
  key: string,
  ask: (begun?: (said: () => string) => void) => Promise<Turn>,
): Promise<Turn> {
  const { tells } = deps;
  if (!tells) return ask();
  let over: ((whole?: string) => void) | undefined;
  try {
    const turn = await ask((said) => {
      over = tells.say(task, key, () => (signal.aborted ? undefined : said()));
    });
    // Before it is stored: what comes after that is told by the journal.
    if (!signal.aborted) over?.(spokenIn(turn.content));
    return turn;
  } finally {
    over?.();
  }
}

/**
 * The most that a turn may cost. Where the request does not show its size, or its bytes are more than what is left, the API
 * counts its tokens, once: the request does not change.
 */
function boundOf(
  { agent, signal, deps }: Scene,
  model: Model,
  book: Budget,
  request: TurnRequest,
): () => Promise<{ most: Cost; why?: string }> {
  const price = priceOf(request.model, deps.settings.prices);
  const shape = shapeOf(request);
  if (book.isLimited && !price)
    throw new PawlError(
      "price_unknown",
      `The price of ${request.model} is not known, and the agent has a budget of $${agent.limits.budgetUsd}`,
    );
  if (book.isLimited && price) checkBounded(shape, request, price);
  const shown = mostOf(shape, request, price);
  let counted: Cost | undefined;
  return async () => {
    if (shape.open.length > 0) return { most: shown, why: ` (${openOf(shape.open, shape.rounds)})` };
    if (!book.isLimited || (shape.countable.length === 0 && book.fits(shown))) return { most: shown };
    counted ??= mostOf(shape, request, price, await model.count(request, signal));
    return { most: counted };
  };
}

function openOf(open: readonly string[], rounds: number): string {
  const often = rounds > 1 ? `, up to ${rounds} times` : "";
  return `${open.join(", ")} may fill the model's whole window${often}: what can be sent as text, base64 or a file is counted before`;
}

function modelOf(model: Model | undefined): Model {
  if (model) return model;
  throw new PawlError("model_invalid", "There is no model to ask: ANTHROPIC_API_KEY is not set");
}
