import { type LocalModel, startModel } from "../../local/model.ts";
import type { Asked } from "./acts.ts";

/** Of every answer: with sonnet's price a cent. */
export const TURN_USAGE = { input_tokens: 100, output_tokens: 1_000 };

/** A stand-in for the model that can be made to think for as long as one wants, and knows when it was asked. */
export interface Paced extends LocalModel {
  readonly asked: readonly Asked[];
  /** While on, it has been asked, and does not answer. */
  hold(on: boolean): void;
}

export async function pacedModel(): Promise<Paced> {
  const asked: Asked[] = [];
  let held: PromiseWithResolvers<void> | undefined;
  const model = await startModel(async (_, count) => {
    asked.push({ at: Date.now(), request: model.requests[count - 1] as Asked["request"] });
    await held?.promise;
    // Like a model, it writes something else each time it is asked.
    return { content: [{ type: "text", text: `Draft ${count}` }], usage: TURN_USAGE };
  });
  return {
    ...model,
    asked,
    hold: (on) => {
      held?.resolve();
      held = on ? Promise.withResolvers() : undefined;
    },
    [Symbol.asyncDispose]: async () => {
      held?.resolve();
      await model[Symbol.asyncDispose]();
    },
  };
}
