import { html } from "hono/html";
import type { Millis, State } from "../../task/document.ts";
import { stateFacts } from "../../task/table.ts";
import { sayDuration } from "../../values/duration.ts";

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

/** One line of it, cut short. */
export function line(text: string, most = 200): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return visible(cut).replaceAll(/\s+/g, " ");
}

/** A text or value of unknown make as a block: text only, and bounded. */
export function block(value: unknown, label: string, most = MOST_SHOWN): Html {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "undefined");
  const isCut = text.length > most;
  return html`<pre tabindex="0" role="region" aria-label="${label}">${visible(text.slice(0, most))}</pre>${
    isCut
      ? html`<p class="note">Cut: ${number(most)} of ${number(text.length)} characters are shown.</p>`
      : ""
  }`;
}

const grouped = new Intl.NumberFormat("en");
export const number = (value: number): string => grouped.format(value);

/** "2026-11-16 09:02:31", in UTC, as the footer says. */
export function time(at: Millis): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

export function day(at: Millis): Html {
  const iso = new Date(at).toISOString().slice(0, 10);
  return html`<time datetime="${iso}">${iso}</time>`;
}

export const ago = (at: Millis, now: Millis): string => `${sayDuration(now - at)} ago`;

export const stateName = (state: State): string => stateFacts[state]?.name ?? state;

/** The word says it; the colour only repeats it. */
export const badge = (state: State): Html => html`<span class="badge ${state}">${stateName(state)}</span>`;

export const taskPath = (id: string): string => `/ui/tasks/${encodeURIComponent(id)}`;

/** A part of a page. Its id lets it stay in place, with its focus and folds, when others come and go. */
export const part = (id: string, title: string, content: Html | string): Html =>
  html`<section id="${id}"><h2>${title}</h2>${content}</section>`;

/** A table that scrolls inside of itself where it is too wide, also by keyboard. */
export function table(id: string, label: string, heads: readonly Head[], rows: readonly Html[]): Html {
  const th = ({ name, end }: Head) => html`<th scope="col" class="${end ? "end" : ""}">${name}</th>`;
  return html`<div class="scroll" id="${id}" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${heads.map(th)}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

export interface Head {
  readonly name: string;
  /** Numbers stand at the end of their column. */
  readonly end?: boolean;
}

/** "Task|Agent|Queued>": a name with a > is a column of numbers. */
export const heads = (names: string): Head[] =>
  names.split("|").map((name) => (name.endsWith(">") ? { name: name.slice(0, -1), end: true } : { name }));
