import { type Effect, type Tool, ToolContent } from "../agent.ts";
import { isPawlError, ToolError } from "../errors/errors.ts";
import { askedOf } from "../journal/asked.ts";
import { isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import { called } from "./awaits.ts";
import { runEffect } from "./effect.ts";
import { accepted } from "./output.ts";
import { type Scene, said } from "./scene.ts";
import { runStep } from "./step.ts";
import { refused } from "./tool-approval.ts";
import type { Ask } from "./wait.ts";

/** Of the conversation that a tool is used in. */
export interface Conversation {
  readonly name: string;
  readonly tools: readonly Tool[];
  /** Whether what its tools are given is kept, for people to look at. */
  readonly keeps: boolean;
  /** What the model said before it asked for them. */
  readonly why: string;
  /** Keys of the calls that were in the journal when this execution began. */
  readonly begun: ReadonlySet<string>;
}

/** Does what the model asked a tool for, as a step or an effect, and says what it is told of it. */
export async function useTool(
  scene: Scene,
  ask: Ask,
  { name, tools, keeps, why, begun }: Conversation,
  use: JsonObject,
): Promise<JsonObject> {
  const { redact = (text) => text } = scene.deps;
  const answer = (content: Json, isError = false): JsonObject => ({
    type: "tool_result",
    tool_use_id: use.id ?? "",
    content,
    ...(isError && { is_error: true }),
  });
  const reply = (content: Json, isError = false) =>
    answer(typeof content === "string" ? content : JSON.stringify(content ?? null), isError);
  const tool = tools.find((one) => one.name === use.name);
  if (!tool) return reply(`There is no tool ${JSON.stringify(use.name)}`, true);
  const input = await accepted(tool.input, use.input);
  if ("why" in input) return reply(`The input is not what the tool takes. ${input.why}`, true);
  const told = async (run: () => unknown): Promise<JsonObject> => {
    try {
      return kept(await run());
    } catch (error) {
      // The model may make something of it; everything else is the task's to deal with.
      if (error instanceof ToolError || (tool.readOnly && isOrdinary(error, scene.signal)))
        return { error: said(scene.deps, error).slice(0, 4_000) };
      throw error;
    }
  };
  // By the id that the stored turn has for it: the same on every run, whatever runs beside it.
  const whole = `${name}/${tool.name}/${String(use.id)}`.replaceAll("#", "-");
  const callName = whole.slice(0, 128);
  const wish = { tool, given: use.input ?? null, input: input.value, callName, whole, why, keeps, begun };
  const refusal = await refused(scene, ask, wish);
  if (refusal !== undefined) return reply(refusal, true);
  const { verify, honoursKey } = tool;
  const asked = () => askedOf(redact(JSON.stringify(use.input ?? null)), keeps);
  const effect: Effect<JsonObject> = {
    run: (key) => told(() => tool.run(input.value, key, called())),
    ...(verify && {
      verify: async (key: string) => {
        const found = await verify(input.value, key);
        return found === undefined ? undefined : kept(found);
      },
    }),
    ...(honoursKey !== undefined && { honoursKey }),
  };
  const done = (await (tool.readOnly
    ? runStep(scene, callName, () => told(() => tool.run(input.value, "", called())), asked)
    : runEffect(scene, callName, effect, asked))) as Json;
  // A person who said that it happened gave a receipt of their own, or none.
  if (!isJsonObject(done) || !["value", "blocks", "error"].some((name) => name in done)) return reply(done);
  if ("blocks" in done) return answer(done.blocks as Json);
  return "error" in done ? reply(done.error as string, true) : reply(done.value as Json);
}

/** As the journal keeps it: whatever a stranger's JSON says, only the tool itself makes blocks of it. */
function kept(result: unknown): JsonObject {
  return result instanceof ToolContent ? { blocks: [...result.blocks] } : { value: (result ?? null) as Json };
}

/** None of Pawl's own, among which are Retry and Fatal: with those an author says what becomes of the task. */
function isOrdinary(error: unknown, signal: AbortSignal): boolean {
  return !signal.aborted && !isPawlError(error);
}
