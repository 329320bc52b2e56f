import { html } from "hono/html";
import type { Millis, State } from "../../task/document.ts";
import { stateFacts } from "../../task/table.ts";
import { sayDuration } from "../../values/duration.ts";
import { numberFormat } from "../../values/number-format.ts";

/** Escaped: what is put into a template is text, unless it came from one. */
export type Html = ReturnType<typeof html>;

/** What a model or a stranger wrote is shown up to here. */
const MOST_SHOWN = 20_000;

/** Control characters, and those that turn the direction of text, become visible; lines and tabs stay. */
export function visible(text: string): string {
  const hidden =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to make visible
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
  return text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replace(hidden, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Text as one line, cut to a length. */
export function line(text: string, most = 200): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return visible(cut).replaceAll(/\s+/g, " ");
}

/** Any text or JSON value as a block: escaped, and cut to a length. */
export function block(value: unknown, label: string, most = MOST_SHOWN, id?: string): Html {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "undefined");
  const isCut = text.length > most;
  return html`<pre${id !== undefined && html` id="${id}"`} tabindex="0" role="region" aria-label="${label}">${visible(text.slice(0, most))}</pre>${
    isCut
      ? html`<p class="note">Cut: ${number(most)} of ${number(text.length)} characters are shown.</p>`
      : ""
  }`;
}

/** To add up each family would cost a list many reads. */
export const OWN_DOLLARS =
  "Own dollars are without those of the tasks that a task submitted: its page adds them up.";

export const number = numberFormat("en");

/**
 * "2026-11-16 09:02:31"; "ms": "09:02:31.120". In UTC, as the footer says, until the page's script writes it in the zone of
 * whoever looks; UTC is shown on hover.
 */
export function time(at: Millis, as?: "ms"): Html {
  const iso = new Date(at).toISOString();
  const [day, clock] = [iso.slice(0, 10), iso.slice(11, 23)];
  const text = as === "ms" ? clock : `${day} ${clock.slice(0, 8)}`;
  return html`<time datetime="${iso}" data-as="${as ?? "s"}" title="${day} ${clock} UTC">${text}</time>`;
}

/** Copies what an element of this id says. Only a script can, so without one it is not there. */
export const copyButton = (id: string, what: string): Html =>
  html`<button type="button" class="copy quiet" id="copy-${id}" data-copies="${id}" data-what="${what}"><span>Copy</span><span class="hidden"> ${what}</span></button>`;

export function day(at: Millis): Html {
  const iso = new Date(at).toISOString().slice(0, 10);
  return html`<time datetime="${iso}">${iso}</time>`;
}

export const ago = (at: Millis, now: Millis): string => `${sayDuration(now - at)} ago`;

export const stateName = (state: State): string => stateFacts[state]?.name ?? state;

/** A state as a badge: its word says the state, its colour only repeats it. */
export const badge = (state: State): Html => html`<span class="badge ${state}">${stateName(state)}</span>`;

export const taskPath = (id: string): string => `/ui/tasks/${encodeURIComponent(id)}`;

/** A part of a page. Its id lets it stay in place, with its focus and folds, when others come and go. */
export const part = (id: string, title: string, content: Html | string, beside?: Html): Html =>
  html`<section id="${id}"><div class="head"><h2>${title}</h2>${beside}</div>${content}</section>`;

/** A table that scrolls inside of itself where it is too wide, also by keyboard. */
export function table(id: string, label: string, heads: readonly Head[], rows: readonly Html[]): Html {
  const th = ({ name, end }: Head) => html`<th scope="col" class="${end ? "end" : ""}">${name}</th>`;
  return html`<div class="scroll" id="${id}" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${heads.map(th)}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

/** A number in a table. Where a table is too wide its heads are not seen: then it says what it counts, unless there is none. */
export const cell = (label: string, value: string, isNone = false): Html =>
  html`<td class="end${isNone ? " none" : ""}" data-label="${label}">${value}</td>`;

export interface Head {
  readonly name: string;
  /** Numbers stand at the end of their column. */
  readonly end?: boolean;
}

/** "Task|Agent|Queued>": a name with a > is a column of numbers. */
export const heads = (names: string): Head[] =>
  names.split("|").map((name) => (name.endsWith(">") ? { name: name.slice(0, -1), end: true } : { name }));
