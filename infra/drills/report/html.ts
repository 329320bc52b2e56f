import { STYLE } from "../../../shared/reconcile/page/style.ts";
import { text } from "../../../shared/reconcile/page/text.ts";
import type { Result } from "../run.ts";
import type { Evidence } from "./evidence.ts";
import { figureRows, ownSettings, PROMISES } from "./text.ts";

/** One page that needs nothing else: to be read, printed, mailed and kept. All that is not ours is escaped. */
export function html({
  date,
  seconds,
  where,
  verdict,
  versions,
  settings,
  results,
  left,
  promises,
}: Evidence): string {
  const isOk = results.every(({ fate }) => fate === "held" || fate === "not run");
  const facts = { when: `${date}, ${seconds} s`, where, ...versions };
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(`Pawl drills: ${verdict}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>Pawl, drills</h1>
<p class="verdict ${isOk ? "ok" : "broken"}">${text(verdict)}</p></header>
<main>
${pairs(Object.entries(facts))}
<ol>${PROMISES.map((name) => `<li><strong>${text(name)}</strong>: ${text(promises[name] ?? "")}</li>`).join("")}</ol>
<table><thead><tr>${["drill", "fault", "verdict", "seconds", ...PROMISES].map((one) => `<th scope="col">${text(one)}</th>`).join("")}</tr></thead>
<tbody>
${results.map(row).join("\n")}
${left.map((one) => cells([one.name, one.fault, "not run", "", ...PROMISES.map(() => "")])).join("\n")}
</tbody></table>
${results.map(section).join("\n")}
<section><h2>Settings</h2>
<p>A drill that has others names them in its own section.</p>
${pairs(Object.entries(settings))}
</section>
</main>
</body>
</html>
`;
}

const cells = (all: readonly string[]) => `<tr>${all.map((one) => `<td>${text(one)}</td>`).join("")}</tr>`;
const list = (all: readonly string[]) =>
  all.length === 0 ? "" : `<ul>${all.map((one) => `<li>${text(one)}</li>`).join("")}</ul>`;
const pairs = (all: readonly (readonly [string, string])[]) =>
  `<table><tbody>${all.map(([what, value]) => `<tr><th scope="row">${text(what)}</th><td>${text(value)}</td></tr>`).join("")}</tbody></table>`;

function row({ drill, fate, seconds, judgement }: Result): string {
  const marks = PROMISES.map((name) => {
    const holds = judgement?.promises.find(({ promise }) => promise === name)?.holds;
    return holds === undefined ? "" : holds ? "holds" : "BROKEN";
  });
  return cells([drill.name, drill.fault, fate, String(seconds), ...marks]);
}

function section({ drill, fate, why, judgement, figures, reconciled, findings = [], told }: Result): string {
  return `<section><h2>${text(`${drill.name}: ${fate}`)}</h2>
<p>${text(drill.what)}.</p>
${drill.env ? `<p>With ${text(ownSettings(drill))}.</p>` : ""}
${why === undefined ? "" : `<p>${text(why)}</p>`}
${list((judgement?.broken ?? []).map(({ promise, detail }) => `BROKEN, ${promise}: ${detail}`))}
${list([...told, ...(reconciled === undefined ? [] : [`the reconciliation: ${reconciled}`]), ...findings])}
${figures ? pairs(figureRows(figures)) : ""}
</section>`;
}
