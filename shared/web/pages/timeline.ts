import { html } from "hono/html";
import { type Asked, contentText } from "../../journal/asked.ts";
import type { HistoryEntry, Millis, Task } from "../../task/document.ts";
import { type Transition, transitions } from "../../task/table.ts";
import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { isJsonObject, type Json } from "../../values/json.ts";
import { badge, block, type Html, line, number, time } from "../frame/text.ts";
import type { Call } from "./journal.ts";

/** Characters of a journaled value that are shown; a page may have a hundred of them. */
const VALUE_SHOWN = 4_000;

type Moment =
  | { readonly at: Millis; readonly event: HistoryEntry }
  | { readonly at: Millis; readonly call: Call };

/** How a task came to where it is: what was written of it, and between that what its handler did. */
export function timeline(task: Task, calls: readonly Call[], before: number): Html {
  const moments = merged(task, calls);
  const isWhole = FIRST.has(task.history[0]?.event ?? "");
  let day = "";
  const rows = moments.map((moment) => {
    const iso = new Date(moment.at).toISOString();
    const isNewDay = iso.slice(0, 10) !== day;
    day = iso.slice(0, 10);
    const when = html`<time datetime="${iso}" data-as="day" title="${day} ${iso.slice(11, 23)} UTC">${isNewDay && html`<span class="day">${day} </span>`}${iso.slice(11, 23)}</time>`;
    return "event" in moment ? eventRow(moment.event, task, when) : callRow(moment.call, task, when);
  });
  return html`${!isWhole && html`<p class="note">The newest ${number(task.history.length)} transitions are kept; there were more before.</p>`}
${before > 0 && html`<p class="note">${number(before)} older entries of the journal are not shown. <code>pawl events ${task.id}</code> shows all.</p>`}
<ol class="timeline">${rows}</ol>`;
}

/** Events by which a task comes into being. */
const FIRST: ReadonlySet<string> = new Set(["submit", "adopt", "deadLetter"]);
/** Events that end an execution: at the same moment, what it did comes first. */
const ENDS: ReadonlySet<string> = new Set(
  "complete retry hold handOff sleep wait doubt fail exhaust cancel".split(" "),
);

/** Transitions and calls by time, each list in its own order: the clocks of two machines may differ. */
function merged({ history, createdAt }: Task, calls: readonly Call[]): Moment[] {
  const moments: Moment[] = [];
  let i = 0;
  let last = createdAt;
  for (const call of calls) {
    // Entries of an older journal have no time: they follow the entry before them.
    last = Math.max(call.at ?? call.endedAt ?? last, last);
    for (let event = history[i]; event; event = history[++i]) {
      if (event.at > last || (event.at === last && ENDS.has(event.event))) break;
      moments.push({ at: event.at, event });
    }
    moments.push({ at: last, call });
  }
  return [...moments, ...history.slice(i).map((event) => ({ at: event.at, event }))];
}

const BIRTHS: Readonly<Record<string, string>> = {
  submit: "it was accepted",
  adopt: "a message that was published directly became a task",
  deadLetter: "a message that can't become a task was kept",
};

function eventRow(
  { event, state, fence, by, note, stamp, at, error }: HistoryEntry,
  task: Task,
  when: Html,
): Html {
  const rule: Transition | undefined = (transitions as Record<string, Transition>)[event];
  const signal = event === "signal" ? task.signals.find((one) => one.at === at) : undefined;
  return html`<li id="e-${stamp}" class="event ${state}">${when}
<div><p><strong>${event}</strong> ${badge(state)} ${rule?.meaning ?? BIRTHS[event] ?? ""}${
    signal && html`: <code>${line(signal.name)}</code> ${line(JSON.stringify(signal.value))}`
  }${note !== undefined && html`: ${line(note, 300)}`}</p>
${error && html`<p class="reason"><code>${line(error.code)}</code> ${line(error.message, 300)}${error.where && html` <span class="note">${line(error.where)}</span>`}</p>`}
<p class="note">by ${line(by)}${fence > 0 && html` · fence ${fence}`}</p></div></li>`;
}

const KINDS = { step: "step", effect: "effect", turn: "model turn", wait: "wait", call: "call" } as const;
const ENDINGS = {
  done: "done",
  open: "begun",
  undone: "did not happen",
  unsure: "nobody knows whether it happened",
  forgotten: "forgotten by a redrive, and done again",
} as const;

function callRow(call: Call, task: Task, when: Html): Html {
  const { n, key, kind, state, at, endedAt, cost, reserved, until, why, kept, asked } = call;
  const took = at !== undefined && endedAt !== undefined && sayDuration(endedAt - at);
  const facts = [
    took && `took ${took}`,
    cost &&
      `${number(cost.inputTokens)}${cachedOf(kept)} + ${number(cost.outputTokens)} tokens, ${dollars(cost.usd)}`,
    state === "open" && reserved && `${dollars(reserved.usd)} at most`,
    why !== undefined && line(why, 300),
  ].filter((fact) => typeof fact === "string");
  return html`<li id="j-${n}" class="call ${kind} ${state}">${when}
<div><p><span class="kind">${KINDS[kind]}</span> <code>${line(key)}</code> ${ENDINGS[state]}</p>
${facts.length > 0 && html`<p class="note">${facts.join(" · ")}</p>`}
${state === "open" && until !== undefined && html`<p class="note">until ${time(until)}</p>`}
${asked && askedOf(n, key, asked)}
${state === "open" && kind === "turn" && task.state === "running" && aloud(task.fence, key)}
${state === "done" && kept && keptOf(n, key, kept)}</div></li>`;
}

/** Where the page's script writes what the turn says. Of another fence it is another one: a turn that is asked again starts over. */
function aloud(fence: number, key: string): Html {
  return html`<pre data-words="${fence} ${key}" tabindex="0" role="region" aria-label="What ${line(key)} says, under fence ${fence}"></pre>`;
}

function askedOf(n: number, key: string, { text, bytes }: Asked): Html {
  if (text === undefined)
    return html`<p class="note">What it was asked is not kept: ${number(bytes ?? 0)} bytes.</p>`;
  const isCut =
    bytes !== undefined && html`<p class="note">The beginning is kept, of ${number(bytes)} bytes.</p>`;
  return html`<details id="a-${n}"><summary>What it was asked</summary>${block(text, `Asked of ${line(key)}`, VALUE_SHOWN + 200)}${isCut}</details>`;
}

function keptOf(n: number, key: string, { value, parts }: NonNullable<Call["kept"]>): Html | string {
  if (parts)
    return html`<p class="note">A large value, kept in ${parts.length} parts beside the journal.</p>`;
  if (value === undefined || value === null) return "";
  return html`<details id="v-${n}"><summary>What it returned</summary>${block(spoken(value) ?? value, `Value of ${line(key)}`, VALUE_SHOWN)}</details>`;
}

/** How much of what a turn read came from the API's cache. */
function cachedOf(kept: Call["kept"]): string {
  const usage = isJsonObject(kept?.value) ? kept.value.usage : undefined;
  const cached = isJsonObject(usage) ? Number(usage.cache_read_input_tokens ?? 0) : 0;
  return cached > 0 ? ` (${number(cached)} cached)` : "";
}

/** The text of a model turn; undefined for other values. */
function spoken(value: Json): string | undefined {
  if (!isJsonObject(value) || !Array.isArray(value.content) || typeof value.stopReason !== "string")
    return undefined;
  return contentText(value.content);
}
