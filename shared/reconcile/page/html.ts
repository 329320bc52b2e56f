import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { number, type Report, verdictOf } from "../figures/report.ts";
import { chart } from "./chart.ts";
import type { Section } from "./section.ts";
import { sections } from "./sections.ts";
import { text } from "./text.ts";

const STYLE = `
:root { color-scheme: light dark; --line: #d7dbe2; --soft: #5b6472; --paper: #fff; --ink: #1a1f27; --ok: #1a7f4b; --look: #845500; --broken: #b3261e; --bar: #4a6fa5; }
@media (prefers-color-scheme: dark) { :root { --line: #343b46; --soft: #a3adba; --paper: #14181e; --ink: #e8ecf1; --ok: #55c98e; --look: #e9ba62; --broken: #ff8a80; --bar: #7fa6e0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1rem; color: var(--soft); font-weight: 600; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.verdict { font-size: 1.6rem; line-height: 1.3; font-weight: 650; margin: .3rem 0 1rem; color: var(--ok); }
.verdict.look { color: var(--look); }
.verdict.broken { color: var(--broken); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
section p { margin: .2rem 0; }
h3, p, li { overflow-wrap: anywhere; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 400; min-width: 14rem; }
.trends { display: flex; flex-wrap: wrap; gap: 1.2rem 2rem; padding: 0; list-style: none; }
.trends span { display: block; color: var(--soft); }
svg rect { fill: var(--bar); }
@media print { body { margin: 0; max-width: none; font-size: 11px; } .table { overflow: visible; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
`;

const TRENDS: readonly (readonly [figure: string, label: string, show?: (value: number) => string])[] = [
  ["sequences", "sequences"],
  ["caught", "duplicates caught"],
  ["executedTwice", "duplicates that reached execution"],
  ["failed", "dead letters"],
  ["usd", "dollars spent", dollars],
  ["respentUsd", "dollars re-spent", dollars],
  ["savedUsd", "dollars saved", dollars],
  ["runP95", "time of a run, p95", sayDuration],
];

/** One page that needs nothing else: to be read, printed, mailed and kept. */
export function html(report: Report): string {
  const { line, level, statement, todo } = verdictOf(report);
  const items = todo.map(({ word, text: what }) => `<li><strong>${word}:</strong> ${text(what)}</li>`);
  const trends = TRENDS.map(
    ([figure, label, show = number]) =>
      `<li><span>${text(label)}</span>${chart(report.trends, figure, show)}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(`Pawl ${report.name}: ${line}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${text(`Pawl, ${report.name}`)}</h1>
<p class="verdict ${level}">${text(statement)}</p>${items.length > 0 ? `<ul class="todo">${items.join("")}</ul>` : ""}</header>
<main>
${sections(report).map(section).join("\n")}
<h2>The last ${report.trends.length} ${report.trends.length === 1 ? "week" : "weeks"}</h2>
<ul class="trends">${trends.join("")}</ul>
</main>
<footer><p>Written ${text(new Date(report.writtenAt).toISOString())}</p></footer>
</body>
</html>
`;
}

function section({ title, isPart, lines = [], head = [], rows = [] }: Section): string {
  const header = head.map((one) => (one === "" ? "<td></td>" : `<th scope="col">${text(one)}</th>`)).join("");
  const body = rows.map(([first = "", ...cells]) => {
    return `<tr><th scope="row">${text(first)}</th>${cells.map((one) => `<td>${text(one)}</td>`).join("")}</tr>`;
  });
  const table =
    rows.length > 0
      ? `<div class="table" tabindex="0" role="region" aria-label="${text(title)}"><table><thead><tr>${header}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
      : "";
  const level = isPart ? "h3" : "h2";
  return `<section><${level}>${text(title)}</${level}>${lines.map((one) => `<p>${text(one)}</p>`).join("")}${table}</section>`;
}
