import { html } from "hono/html";
import type { Millis } from "../../task/document.ts";
import { sayDuration } from "../../values/duration.ts";
import { type Html, line, number } from "../frame/text.ts";
import { type Scale, type Span, scaleOf } from "./spans.ts";

/** Rows that are drawn: the newest. */
const MOST_ROWS = 80;

/** Where a task's time went: a bar for each start of its handler and each call. What the bars show, the words say too. */
export function waterfall(spans: readonly Span[], created: Millis): Html {
  if (spans.length === 0) return html`<p class="empty">Nothing has run yet.</p>`;
  const shown = spans.slice(-MOST_ROWS);
  const scale = scaleOf(shown);
  const more = spans.length - shown.length;
  return html`<ul class="legend" aria-hidden="true">
<li class="run">run</li><li class="step">step</li><li class="turn">model turn</li><li class="effect">effect</li><li class="wait">wait</li><li class="lost">cut off</li></ul>
${more > 0 && html`<p class="note">${number(more)} before these are not drawn.</p>`}
<ol class="waterfall">${shown.map((span) => row(span, scale, created))}</ol>
${scale.isFolded && html`<p class="note">Times in which nothing ran are drawn shorter than they were. The words have the true lengths.</p>`}`;
}

const KINDS = {
  run: "run",
  step: "step",
  effect: "effect",
  turn: "turn",
  wait: "wait",
  call: "call",
} as const;
const ENDINGS: Readonly<Record<Span["ending"], string>> = {
  done: "",
  open: ", goes on",
  lost: ", cut off",
  undone: ", failed",
  unsure: ", in doubt",
};

function row(span: Span, scale: Scale, created: Millis): Html {
  const { kind, name, from, to, ending, queued, heard } = span;
  const ended = ending === "lost" ? heard : to;
  const took =
    from === undefined
      ? "length unknown"
      : ended === undefined
        ? "length unknown"
        : sayDuration(ended - from);
  const begun = sayDuration(Math.max(0, (from ?? to) - created));
  const waited = queued !== undefined && from !== undefined && from > queued && sayDuration(from - queued);
  return html`<li class="${kind} ${ending}"><span class="what"><span class="word">${KINDS[kind]}</span> ${
    kind === "run" ? name : html`<code>${line(name, 80)}</code>`
  }</span>${bars(span, scale)}<span class="took">${took}${ENDINGS[ending]}<span class="hidden">, from ${begun} after it was submitted${
    waited && `, after ${waited} in its queue`
  }</span></span></li>`;
}

/** Half a percent at least, or it would not be seen. */
const LEAST = 0.5;

function bars({ from, to, ending, queued, heard }: Span, { at }: Scale): Html {
  const rect = (name: string, begin: Millis, end: Millis) => {
    const x = Math.min(at(begin), 100 - LEAST);
    const width = Math.max(LEAST, at(end) - x);
    return html`<rect class="${name}" x="${x.toFixed(2)}%" width="${width.toFixed(2)}%" y="3" height="10" rx="2"/>`;
  };
  const known = ending === "lost" ? (heard ?? from ?? to) : to;
  return html`<svg class="bars" aria-hidden="true" focusable="false">${
    queued !== undefined && from !== undefined && rect("queue", queued, from)
  }${rect(from === undefined ? "moment" : "length", from ?? to, known)}${ending === "lost" && rect("gap", known, to)}</svg>`;
}
