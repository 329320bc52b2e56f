import type { Tool } from "../agent.ts";
import { askedOf } from "../journal/asked.ts";
import { approvalSignal } from "../task/signals.ts";
import { byteLength, canonicalJson, isJsonObject, type Json, sha256 } from "../values/json.ts";
import type { Scene } from "./scene.ts";
import type { Ask } from "./wait.ts";

/** What a model wants a tool to do. */
export interface Wish {
  readonly tool: Tool;
  /** What the model gave it, and what its schema made of that. */
  readonly given: Json;
  readonly input: unknown;
  /** The name of the call that does it, and the whole of what that was cut from. */
  readonly callName: string;
  readonly whole: string;
  /** What the model said before it asked. */
  readonly why: string;
  /** Whether the journal keeps what is asked, for people to look at. */
  readonly keeps: boolean;
  /** Keys of the calls that were in the journal when this execution began. */
  readonly begun: ReadonlySet<string>;
}

const NAME_KEPT = 90;
const ARGUMENTS_SHOWN = 800;
const WHY_SHOWN = 400;

/**
 * Waits for a person, where the tool asks first: what the model is told if it may not run, else nothing. The question's name
 * has a digest of the tool and its arguments: an answer to other arguments is the answer to another question. The question
 * is in the journal before it is asked, and its answer before the tool runs; from the question's first entry on it has to be
 * answered, whatever `approve` says by then, and once the call itself has begun it is not asked any more.
 */
export async function refused(scene: Scene, ask: Ask, wish: Wish): Promise<string | undefined> {
  const { tool, input, callName, begun, keeps } = wish;
  const { approve, approvalTimeout: timeout } = tool;
  const name = questionName(wish);
  const isBegun = begun.has(`${callName}#1`);
  const isAsked = begun.has(`${name}#1`);
  if (!isAsked && (isBegun || approve === undefined)) return undefined;
  const asks = typeof approve === "function" ? () => approve(input) : () => approve;
  if (!isAsked && !(await scene.within(asks))) return undefined;
  const { redact = (text) => text } = scene.deps;
  const summary = redact(summaryOf(wish));
  const [answer] = await ask({
    name,
    signal: approvalSignal(name),
    summary,
    isPart: true,
    ...askedOf(summary, keeps),
    ...(timeout !== undefined && { timeout }),
  });
  if ("timedOut" in answer) return `Nobody approved this call within ${timeout}. It was not made.`;
  const { approved, note } = isJsonObject(answer.value) ? answer.value : {};
  if (approved === true) return undefined;
  return `A person refused this call. It was not made.${note ? ` ${String(note)}` : ""}`;
}

function questionName({ tool, given, callName, whole }: Wish): string {
  const digest = sha256(canonicalJson([whole, tool.name, given])).slice(0, 32);
  return `${callName.slice(0, NAME_KEPT).toWellFormed()}@${digest}`;
}

/** For people: what a model wrote stays on one line, or behind a mark, so that it can't pass for anything else. */
function summaryOf({ tool, given, why }: Wish): string {
  const text = JSON.stringify(given);
  const bytes = byteLength(text);
  const shown =
    text.length > ARGUMENTS_SHOWN
      ? `${text.slice(0, ARGUMENTS_SHOWN).toWellFormed()}… (the beginning of ${bytes} bytes: the whole is in the journal, with the turn)`
      : text;
  const said = why.slice(0, WHY_SHOWN).toWellFormed().trim();
  const reason = said ? `\nThe model says:\n${said.replaceAll(/^/gm, "> ")}` : "";
  return `May the model use ${tool.name}?\nWith: ${shown}${reason}`;
}
