import type { Hono } from "hono";
import { html } from "hono/html";
import { PawlError } from "../../errors/errors.ts";
import { type Listed, levelOf, listReports, readReport } from "../../reconcile/books/reports.ts";
import type { Level } from "../../reconcile/figures/report.ts";
import type { State } from "../../task/document.ts";
import { requireScope } from "../authorize.ts";
import type { Env, Request } from "../context.ts";
import { FRAMING, securityHeaders } from "../frame/headers.ts";
import { renderPage, seesReports } from "../frame/layout.ts";
import { day, type Html, heads, line, table } from "../frame/text.ts";

/** A stored report may say what strangers wrote: no script, no form, no origin, nothing from elsewhere. */
const REPORT_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";

/** Characters of a verdict that are shown: one with every kind of finding is a paragraph. */
const LONGEST_VERDICT = 2_000;

/** The word says it; the colour, which is that of a state, only repeats it. */
const LEVELS: Readonly<Record<Level, readonly [word: string, colour: State]>> = {
  ok: ["in order", "completed"],
  look: ["to do", "waiting"],
  broken: ["broken", "failed"],
};

function levelBadge(report: Listed): Html {
  const [word, colour] = LEVELS[levelOf(report)];
  return html`<span class="badge ${colour}">${word}</span>`;
}

export function addReports(ui: Hono<Env>): void {
  ui.get("/reports", async (c) => {
    checkReports(c);
    const reports = await listReports(c.var.deps.store);
    const rows = reports.map(
      (report) => html`<tr id="r-${report.name}">
<th scope="row"><a href="/ui/reports/${encodeURIComponent(report.name)}">${report.name}</a></th>
<td>${levelBadge(report)}</td>
<td class="wrap">${line(report.verdict, LONGEST_VERDICT)}</td><td>${day(report.from)}</td><td>${day(report.to)}</td></tr>`,
    );
    const main = html`<h1>Reports</h1>
<p class="lead">Every sequence of every stream, explained by the documents: once a week, and once a month.</p>
${
  rows.length > 0
    ? table("reports", "Reports", heads("Report|Verdict|What it says|From (UTC)|To (UTC)"), rows)
    : html`<p class="empty">None yet. The first is made by the weekly run, or by <code>pawl reconcile</code>.</p>`
}`;
    return renderPage(c, { title: "Reports", main, at: "/ui/reports" });
  });

  ui.get("/reports/:name", async (c) => {
    checkReports(c);
    const { listed } = await readReport(c.var.deps.store, "html", c.req.param("name"));
    const path = `/ui/reports/${encodeURIComponent(listed.name)}/document`;
    securityHeaders(c, FRAMING);
    const main = html`<h1>Report ${listed.name}</h1>
<p class="lead">${levelBadge(listed)} ${line(listed.verdict, LONGEST_VERDICT)}</p>
<p><a href="/ui/reports">All reports</a> · <a href="${path}">This report by itself</a></p>
<iframe class="report" sandbox title="Report ${listed.name}" src="${path}"></iframe>`;
    return renderPage(c, { title: `Report ${listed.name}`, main, at: "/ui/reports" });
  });

  ui.get("/reports/:name/document", async (c) => {
    checkReports(c);
    const { text } = await readReport(c.var.deps.store, "html", c.req.param("name"));
    securityHeaders(c, REPORT_POLICY);
    return c.html(text);
  });
}

function checkReports(c: Request): void {
  requireScope(c.var.token, "operate");
  if (!seesReports(c.var.token))
    throw new PawlError(
      "scope_missing",
      "The token is limited to some agents, and reports are about all of them",
    );
}
