import type { AgentContext, LlmAnswer } from "../agent.ts";
import { PawlError } from "../errors/errors.ts";
import { askedOf, promptText } from "../journal/asked.ts";
import { type Cost, NO_COST, plus } from "../journal/cost.ts";
import { known } from "../journal/entries.ts";
import { costOf } from "../journal/usage.ts";
import { spokenIn, type Turn } from "../ports/model.ts";
import type { Json } from "../values/json.ts";
import { isServer, withServers } from "./mcp-tools.ts";
import { turnsOf } from "./model-turn.ts";
import { wantedOf } from "./output.ts";
import type { Scene } from "./scene.ts";
import { firstMessages, isOwn, maxTokensOf, type Request, turnRequest } from "./turn-request.ts";
import { useTool } from "./use-tool.ts";
import type { Ask } from "./wait.ts";

const DEFAULT_MAX_TURNS = 25;

type Verbs = AgentContext<unknown>;
type Answered = Omit<LlmAnswer, "output"> & { readonly output?: unknown };
type Failed = "model_truncated" | "model_refusal" | "model_context" | "model_output" | "model_stop";

/**
 * A conversation with a model: turns and tools, each in the journal, so that a handler that starts anew hears what was
 * said before and pays only for what comes next.
 */
export function llmOf(scene: Scene, ask: Ask): Verbs["llm"] {
  const turn = turnsOf(scene);
  const { keepPrompts: keepsAny, prices } = scene.deps.settings;
  const { redact = (text) => text } = scene.deps;

  const begun = new Set(known(scene.journal.listed()).keys());
  const asked = new Map<string, number>();
  const converse = async (given: string, request: Request): Promise<Answered> => {
    const ordinal = (asked.get(given) ?? 0) + 1;
    asked.set(given, ordinal);
    const name = ordinal === 1 ? given : `${given} (${ordinal})`;
    const { maxTurns = DEFAULT_MAX_TURNS, onMaxTokens = "fail" } = request ?? {};
    const messages: Json[] = firstMessages(name, request);
    const wanted = wantedOf(name, request);
    const keeps = keepsAny && request.keepPrompts !== false;
    const offered = request.tools ?? [];
    // Where there is no list to ask for, the first turn is the very next thing.
    const tools = offered.some(isServer) ? await withServers(scene, name, offered) : offered;
    const own = tools.filter((tool) => isOwn(tool));
    let container: string | undefined;
    let misses = 0;
    let heard = 0;
    let cost = NO_COST;
    for (let turns = 0; turns < maxTurns; turns++) {
      // The first stands for the whole in the handler's order; the rest are parts of it.
      const first = turns === 0 ? ordinal : undefined;
      const news = messages.slice(heard);
      const asked = () => askedOf(redact(promptText(turns === 0 ? request.system : undefined, news)), keeps);
      const body = turnRequest(name, { ...request, tools }, messages, wanted, container);
      const { turn: answer, key } = await turn(`${name}/turn ${turns + 1}`, body, first, asked);
      const failed = (code: Failed, message: string) => {
        const error = new PawlError(code, `${name}: ${message}`);
        scene.heard.failed(key, error);
        return error;
      };
      container = answer.container ?? container;
      cost = plus(cost, costOf(answer.usage, request.model, prices));
      heard = messages.push({ role: "assistant", content: answer.content as Json });
      switch (answer.stopReason) {
        case "tool_use": {
          const uses = answer.content.filter((block) => block.type === "tool_use");
          const conversation = { name, tools: own, keeps, why: spokenIn(answer.content), begun };
          const results = await allOf(uses.map((use) => () => useTool(scene, ask, conversation, use)));
          messages.push({ role: "user", content: results as Json });
          break;
        }
        case "pause_turn":
          // A tool on the model's own side takes its time: the same conversation goes on.
          break;
        case "max_tokens":
          if (onMaxTokens === "return") return answered(answer, messages, cost, undefined);
          throw failed(
            "model_truncated",
            `the answer reached ${maxTokensOf(request)} tokens and is not whole`,
          );
        case "refusal":
          throw failed(
            "model_refusal",
            `${request.model} refused to answer. ${refusalOf(answer).slice(0, 500)}`,
          );
        case "model_context_window_exceeded":
          throw failed("model_context", `the conversation is longer than ${request.model} can hold`);
        case "end_turn":
        case "stop_sequence": {
          const checked = wanted ? await wanted.check(spokenIn(answer.content)) : { output: undefined };
          if ("output" in checked) return answered(answer, messages, cost, checked.output);
          if (++misses === wanted?.tries)
            throw failed("model_output", `none of ${misses} answers fits the schema. ${checked.why}`);
          messages.push({ role: "user", content: againOf(checked.why) });
          break;
        }
        default:
          throw failed(
            "model_stop",
            `${request.model} stopped for ${JSON.stringify(answer.stopReason.slice(0, 100))}`,
          );
      }
    }
    throw new PawlError("model_turns", `${name}: no answer after ${maxTurns} turns`);
  };
  return converse as Verbs["llm"];
}

/**
 * Begun in the order in which the model asked, so that ordinals are the same on every run. A tool that fails does not cut
 * the others off: what they did is stored first. One alone is awaited as it is: nothing runs beside it, should it wait.
 */
async function allOf<T>(works: readonly (() => Promise<T>)[]): Promise<T[]> {
  const [first] = works;
  if (works.length === 1 && first) return [await first()];
  const ended = await Promise.allSettled(works.map((work) => work()));
  const failed = ended.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

const againOf = (why: string) =>
  `Your answer does not fit the schema. ${why.slice(0, 2_000)}. Answer again, with the whole of it.`;

function refusalOf(answer: Turn): string {
  const { category, explanation } = answer.stopDetails ?? {};
  return [category, explanation, spokenIn(answer.content)]
    .filter((one) => typeof one === "string" && one)
    .join(": ");
}

function answered(answer: Turn, messages: readonly Json[], cost: Cost, output: unknown): Answered {
  const { stopReason, content, model, id, container } = answer;
  return {
    ...(output !== undefined && { output }),
    text: spokenIn(answer.content),
    stopReason,
    content: [...content],
    messages: [...messages],
    model,
    cost,
    ...(id !== undefined && { id }),
    ...(container !== undefined && { container }),
  };
}
