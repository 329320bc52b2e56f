import { messageOf } from "../../../shared/errors/errors.ts";
import type { TurnRequest } from "../../../shared/ports/model.ts";
import type { ScriptedTurn } from "../../../shared/testing/scripted-model.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { type LocalModel, type Reply, startModel, text } from "../model.ts";
import { sensibleAnswer } from "./answer.ts";

type Answers = (
  request: TurnRequest,
  count: number,
) => ScriptedTurn | undefined | Promise<ScriptedTurn | undefined>;

/** What `agents/<agent>.model.ts` exports: as for tests. Where it has nothing to say, the stand-in answers by itself. */
export type StandInScript = readonly ScriptedTurn[] | Answers;

const MOST_KEPT = 100;

export interface Script {
  readonly script: StandInScript;
  /** For messages. */
  readonly file: string;
}

export interface StandIn extends LocalModel {
  /** ANTHROPIC_BASE_URL of an agent: its requests say by their path whose they are. */
  urlFor(agent: string): string;
}

/** A model for agents that have no key. `scriptOf`: an agent's script, as it is now. */
export async function startStandIn(scriptOf: (agent: string) => Script | undefined): Promise<StandIn> {
  const counts = new Map<string, number>();
  const model = await startModel(async (request, _, agent) => {
    // Nobody reads them here, and it may run for days.
    if (model.requests.length > MOST_KEPT) model.requests.splice(0, MOST_KEPT / 2);
    const count = (counts.get(agent) ?? 0) + 1;
    counts.set(agent, count);
    const scripted = scriptOf(agent);
    return (scripted && (await replyOf(scripted, request, count))) ?? sensibleAnswer(request);
  });
  return Object.assign(model, { urlFor: (agent: string) => `${model.url}/${agent}` });
}

async function replyOf(
  { script, file }: Script,
  request: JsonObject,
  count: number,
): Promise<Reply | undefined> {
  try {
    const turn =
      typeof script === "function"
        ? await script(request as unknown as TurnRequest, count)
        : script[(request.messages as JsonObject[]).filter(({ role }) => role === "assistant").length];
    if (turn === undefined) return undefined;
    if (typeof turn === "string") return text(turn);
    if (Array.isArray(turn.content)) return turn;
    throw new Error(`its answer should be a text, or what asks(…) returns, and is ${JSON.stringify(turn)}`);
  } catch (error) {
    // The task fails at once, by name: to ask again would bring the same.
    return { status: 400, message: `${file}: ${messageOf(error).slice(0, 400)}` };
  }
}

/** Whether a module's default export can be one. */
export function isScript(value: unknown): value is StandInScript {
  return typeof value === "function" || Array.isArray(value);
}
