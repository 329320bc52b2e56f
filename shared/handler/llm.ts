import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AgentContext, Effect, LlmAnswer, LlmRequest, Tool } from "../agent.ts";
import { isPawlError, PawlError, ToolError } from "../errors/errors.ts";
import { askedOf, promptText } from "../journal/asked.ts";
import { type Cost, NO_COST, plus } from "../journal/cost.ts";
import { costOf } from "../journal/usage.ts";
import type { Turn, TurnRequest } from "../ports/model.ts";
import type { Json, JsonObject } from "../values/json.ts";
import { runEffect } from "./effect.ts";
import { turnsOf } from "./model-turn.ts";
import { type Scene, said, wrongCall } from "./scene.ts";
import { runStep } from "./step.ts";

const DEFAULT_MAX_TOKENS = 8_192;
const DEFAULT_MAX_TURNS = 25;

type Verbs = AgentContext<unknown>;

/**
 * A conversation with a model: turns and tools, each in the journal, so that a handler that starts anew hears what was
 * said before and pays only for what comes next.
 */
export function llmOf(scene: Scene): Verbs["llm"] {
  const turn = turnsOf(scene);
  const { keepPrompts: keepsAny } = scene.deps.settings;
  const { redact = (text) => text } = scene.deps;

  const useTool = async (name: string, use: JsonObject, tools: readonly Tool[], keeps: boolean) => {
    const reply = (content: Json, isError = false): JsonObject => ({
      type: "tool_result",
      tool_use_id: use.id ?? "",
      content: typeof content === "string" ? content : JSON.stringify(content ?? null),
      ...(isError && { is_error: true }),
    });
    const tool = tools.find((one) => one.name === use.name);
    if (!tool) return reply(`There is no tool ${JSON.stringify(use.name)}`, true);
    const input = await accepted(tool, use.input);
    if ("issues" in input) return reply(input.issues, true);
    const told = async (run: () => unknown): Promise<JsonObject> => {
      try {
        return { value: ((await run()) ?? null) as Json };
      } catch (error) {
        // The model may make something of it; everything else is the task's to deal with.
        if (error instanceof ToolError || (tool.readOnly && isOrdinary(error, scene.signal)))
          return { error: said(scene.deps, error).slice(0, 4_000) };
        throw error;
      }
    };
    // By the id that the stored turn has for it: the same on every run, whatever runs beside it.
    const callName = `${name}/${tool.name}/${String(use.id)}`.replaceAll("#", "-").slice(0, 128);
    const { verify, honoursKey } = tool;
    const asked = () => askedOf(redact(JSON.stringify(use.input ?? null)), keeps);
    const effect: Effect<JsonObject> = {
      run: (key) => told(() => tool.run(input.value, key)),
      ...(verify && {
        verify: async (key: string) => {
          const found = await verify(input.value, key);
          return found === undefined ? undefined : { value: found as Json };
        },
      }),
      ...(honoursKey !== undefined && { honoursKey }),
    };
    const done = (await (tool.readOnly
      ? runStep(scene, callName, () => told(() => tool.run(input.value, "")), asked)
      : runEffect(scene, callName, effect, asked))) as JsonObject;
    return "error" in done ? reply(done.error as string, true) : reply(done.value as Json);
  };

  const asked = new Map<string, number>();
  return async (given, request) => {
    const ordinal = (asked.get(given) ?? 0) + 1;
    asked.set(given, ordinal);
    const name = ordinal === 1 ? given : `${given} (${ordinal})`;
    const { tools = [], maxTurns = DEFAULT_MAX_TURNS, onMaxTokens = "fail" } = request ?? {};
    const messages: Json[] = firstMessages(name, request);
    const keeps = keepsAny && request.keepPrompts !== false;
    let heard = 0;
    let cost = NO_COST;
    for (let turns = 0; turns < maxTurns; turns++) {
      // The first stands for the whole in the handler's order; the rest are parts of it.
      const first = turns === 0 ? ordinal : undefined;
      const news = messages.slice(heard);
      const asked = () => askedOf(redact(promptText(turns === 0 ? request.system : undefined, news)), keeps);
      const { turn: answer, key } = await turn(
        `${name}/turn ${turns + 1}`,
        asTurn(request, messages, tools),
        first,
        asked,
      );
      const failed = (code: "model_truncated" | "model_refusal" | "model_context", message: string) => {
        const error = new PawlError(code, `${name}: ${message}`);
        scene.heard.failed(key, error);
        return error;
      };
      cost = plus(cost, costOf(answer.usage, request.model, scene.deps.settings.prices));
      heard = messages.push({ role: "assistant", content: answer.content as Json });
      switch (answer.stopReason) {
        case "tool_use": {
          const uses = answer.content.filter((block) => block.type === "tool_use");
          // In the order in which the model asked, so that ordinals are the same on every run.
          const ended = await Promise.allSettled(uses.map((use) => useTool(name, use, tools, keeps)));
          // A tool that fails does not cut the others off: what they did is stored first.
          const failed = ended.find((one) => one.status === "rejected");
          if (failed) throw failed.reason;
          const results = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
          messages.push({ role: "user", content: results as Json });
          break;
        }
        case "pause_turn":
          // A tool on the model's own side takes its time: the same conversation goes on.
          break;
        case "max_tokens":
          if (onMaxTokens === "return") return answered(answer, messages, cost);
          throw failed(
            "model_truncated",
            `the answer reached ${maxTokensOf(request)} tokens and is not whole`,
          );
        case "refusal":
          throw failed(
            "model_refusal",
            `${request.model} refused to answer. ${textOf(answer).slice(0, 500)}`,
          );
        case "model_context_window_exceeded":
          throw failed("model_context", `the conversation is longer than ${request.model} can hold`);
        default:
          return answered(answer, messages, cost);
      }
    }
    throw new PawlError("model_turns", `${name}: no answer after ${maxTurns} turns`);
  };
}

function firstMessages(name: string, request: LlmRequest): Json[] {
  if (typeof request?.model !== "string") throw wrongCall("llm", name, "{ model, prompt }, model a text");
  if (request.messages) return [...request.messages];
  if (typeof request.prompt !== "string") throw wrongCall("llm", name, "a prompt, or messages");
  return [{ role: "user", content: request.prompt }];
}

const maxTokensOf = ({ maxTokens = DEFAULT_MAX_TOKENS }: LlmRequest) => maxTokens;

function asTurn(request: LlmRequest, messages: readonly Json[], tools: readonly Tool[]): TurnRequest {
  const { model, system, parameters = {} } = request;
  return {
    ...parameters,
    model,
    max_tokens: maxTokensOf(request),
    ...(system !== undefined && { system }),
    messages: [...messages],
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({
        name: tool.name,
        description: tool.description,
        input_schema: tool.inputSchema,
      })),
    }),
  };
}

async function accepted(
  tool: Tool,
  input: Json | undefined,
): Promise<{ value: unknown } | { issues: string }> {
  const checked = await (tool.input as StandardSchemaV1)["~standard"].validate(input);
  if (!checked.issues) return { value: checked.value };
  const issues = checked.issues.map(({ message, path }) => {
    const at = path?.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return at ? `${at}: ${message}` : message;
  });
  return { issues: `The input is not what the tool takes. ${issues.slice(0, 5).join("; ")}` };
}

/** None of Pawl's own, among which are Retry and Fatal: with those an author says what becomes of the task. */
function isOrdinary(error: unknown, signal: AbortSignal): boolean {
  return !signal.aborted && !isPawlError(error);
}

function textOf({ content }: Turn): string {
  return content.flatMap((block) => (block.type === "text" ? [String(block.text)] : [])).join("");
}

function answered(answer: Turn, messages: readonly Json[], cost: Cost): LlmAnswer {
  const { stopReason, content, model } = answer;
  return { text: textOf(answer), stopReason, content: [...content], messages: [...messages], model, cost };
}
