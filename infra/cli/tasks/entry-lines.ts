import { contentText } from "../../../shared/journal/asked.ts";
import type { Entry } from "../../../shared/journal/entries.ts";
import { dollars } from "../../../shared/values/dollars.ts";
import { isJsonObject } from "../../../shared/values/json.ts";
import { oneLine } from "../output.ts";

/** Characters of what a turn was asked, and of what it said: the task's page has more. */
const SHOWN = 160;

/** An entry of a journal, and of a turn what it was asked, what it said, and what of it came from the model's cache. */
export function entryLines(entry: Entry): string[] {
  const head = `  ${entry.kind.padEnd(8)} ${entry.key}`;
  if (entry.kind === "intent" && entry.of === "turn") {
    const { asked } = entry;
    return [head, ...saidLine("asked", asked?.text, asked?.bytes !== undefined)];
  }
  if (entry.kind !== "receipt" || !entry.cost) return [head];
  const { inputTokens, outputTokens, usd } = entry.cost;
  const turn = isJsonObject(entry.value) ? entry.value : {};
  const cached = isJsonObject(turn.usage) ? Number(turn.usage.cache_read_input_tokens ?? 0) : 0;
  const read = cached > 0 ? `${inputTokens} (${cached} cached)` : inputTokens;
  const said = Array.isArray(turn.content) ? contentText(turn.content) : undefined;
  return [`${head}  ${read} + ${outputTokens} tokens, ${dollars(usd)}`, ...saidLine("said", said)];
}

function saidLine(what: string, text: string | undefined, isCut = false): string[] {
  if (!text) return [];
  const isLong = isCut || text.length > SHOWN;
  return [`           ${what}: ${oneLine(text.slice(0, SHOWN).toWellFormed())}${isLong ? "…" : ""}`];
}
