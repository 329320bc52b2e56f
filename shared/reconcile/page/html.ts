import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { numberFormat } from "../../values/number-format.ts";
import { number, type Report, type Verdict, verdictOf } from "../figures/report.ts";
import { chart, type Figure } from "./chart.ts";
import { findingSections } from "./findings.ts";
import { headlines } from "./headlines.ts";
import type { Section } from "./section.ts";
import { tables } from "./sections.ts";
import { STYLE } from "./style.ts";
import { text } from "./text.ts";

const compact = numberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const count = { show: number, brief: compact };
const money = {
  show: dollars,
  brief: (value: number) => (value > 0 && value < 0.005 ? "<$0.01" : `$${compact(value)}`),
};
/** An axis has room for one unit. */
const time = {
  show: sayDuration,
  brief: (value: number) => {
    const unit = [
      ["d", 86_400_000],
      ["h", 3_600_000],
      ["min", 60_000],
    ] as const;
    const [name, size] = unit.find(([, one]) => value >= one) ?? [];
    return size === undefined ? sayDuration(value) : `${compact(value / size)} ${name}`;
  },
};

const FIGURES: readonly Figure[] = [
  { name: "completed", label: "Tasks completed", ...count },
  { name: "failed", label: "Dead letters", ...count },
  { name: "caught", label: "Duplicates caught", ...count },
  { name: "executedTwice", label: "Duplicates that reached execution", ...count },
  { name: "usd", label: "Dollars spent", ...money },
  { name: "respentUsd", label: "Dollars re-spent because of crashes, at most", ...money },
  { name: "savedUsd", label: "Dollars saved by the journal", ...money },
  { name: "wholeP95", label: "Time per task, p95", ...time },
];

/** One page that needs nothing else: to be read, printed, mailed and kept. */
export function html(report: Report): string {
  const verdict = verdictOf(report);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(`Pawl ${report.name}: ${verdict.line}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${text(`Pawl, ${report.name}`)}</h1>
<p class="verdict ${verdict.level}">${text(`${verdict.statement}${howMuchToDo(verdict)}`)}</p></header>
<main>
${figures(report)}
${charts(report)}
${whatToDo(report, verdict)}
${tables(report).map(section).join("\n")}
</main>
<footer><p>Written ${text(new Date(report.writtenAt).toISOString())}</p></footer>
</body>
</html>
`;
}

/** The list of what there is to do stands below the charts: the first line says that it is there. */
function howMuchToDo({ todo }: Verdict): string {
  const said = (["Broken", "To do"] as const).flatMap((word) => {
    const many = todo.filter((one) => one.word === word).length;
    return many === 0 ? [] : [` ${word}: ${number(many)}, see below.`];
  });
  return said.join("");
}

function figures(report: Report): string {
  const items = headlines(report).map(
    ({ label, value, note, change = "" }) =>
      `<li><span>${text(label)}</span><strong>${text(value)}</strong><span>${text(note)}</span>${change && `<span>${text(change)}</span>`}</li>`,
  );
  return `<ul class="figures">${items.join("")}</ul>`;
}

function charts({ trends, name }: Report): string {
  const of = name.includes("W") ? "week" : "month";
  const items = FIGURES.map((one) => `<li><span>${text(one.label)}</span>${chart(trends, one)}</li>`);
  const title = trends.length === 1 ? `This ${of}` : `The last ${trends.length} ${of}s`;
  return `<h2>${title}</h2>\n<ul class="charts">${items.join("")}</ul>`;
}

function whatToDo(report: Report, { todo }: Verdict): string {
  const items = todo.map(({ word, text: what }) => `<li><strong>${word}:</strong> ${text(what)}</li>`);
  const list = items.length > 0 ? `<ul class="todo">${items.join("")}</ul>` : "<p>Nothing.</p>";
  return [`<h2>What to do</h2>${list}`, ...findingSections(report).map(section)].join("\n");
}

function section({ title, isPart, lines = [], head = [], rows = [], isNumeric }: Section): string {
  const right = isNumeric ? ' class="n"' : "";
  const header = head.map((one, i) =>
    one === "" ? "<td></td>" : `<th scope="col"${i > 0 ? right : ""}>${text(one)}</th>`,
  );
  const body = rows.map(([first = "", ...cells]) => {
    return `<tr><th scope="row">${text(first)}</th>${cells.map((one) => `<td${right}>${text(one)}</td>`).join("")}</tr>`;
  });
  const table =
    rows.length > 0
      ? `<div class="table" tabindex="0" role="region" aria-label="${text(title)}"><table><thead><tr>${header.join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
      : "";
  const level = isPart ? "h3" : "h2";
  return `<section><${level}>${text(title)}</${level}>${lines.map((one) => `<p>${text(one)}</p>`).join("")}${table}</section>`;
}
