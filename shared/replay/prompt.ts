import { askedHashOf, promptText } from "../journal/asked.ts";
import type { TurnRequest } from "../ports/model.ts";
import { isJsonObject, type Json } from "../values/json.ts";
import type { ExportedJournal } from "./exported.ts";

/** So much is shown on either side. */
const SHOWN = 60;

/** How a model's request differs from the one that the journal's answer was given to; undefined where it does not, or nobody knows. */
export function promptDifference(
  { entries, redacted }: ExportedJournal,
  key: string,
  request: TurnRequest,
): string | undefined {
  const tries = entries.flatMap((entry) => (entry.kind === "intent" && entry.key === key ? [entry] : []));
  const before = tries.at(-1)?.askedHash;
  if (redacted || before === undefined || askedHashOf(request) === before) return undefined;
  const asked = tries[0]?.asked?.text;
  const now = newsOf(request, asked ?? "");
  if (asked === undefined || now.startsWith(asked))
    return `the model would be asked something else: what it is told is the same as far as the journal keeps it, so it is in the rest, the tools, the model (now ${request.model}) or the parameters`;
  const at = [...asked].findIndex((_, i) => asked[i] !== now[i]);
  const from = Math.max(0, (at < 0 ? asked.length : at) - SHOWN / 3);
  const cut = (text: string) => JSON.stringify(text.slice(from, from + SHOWN));
  return `the model would be asked something else: ${cut(asked)} was asked, and now it is ${cut(now)}`;
}

/** As the journal keeps what a turn was asked: with the system prompt only in a conversation's first turn. */
function newsOf({ system, messages }: TurnRequest, before: string): string {
  const all = Array.isArray(messages) ? (messages as Json[]) : [];
  const isFirst = before.startsWith("[system]\n");
  const said = all.findLastIndex((one) => isJsonObject(one) && one.role === "assistant");
  const isWhole = isFirst || /^\[\d+ earlier messages\]/.test(before);
  return promptText(
    isFirst && typeof system === "string" ? system : undefined,
    isWhole ? all : all.slice(said + 1),
  );
}
