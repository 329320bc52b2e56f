import { describe, expect, test } from "vitest";
import { NO_TALLY } from "../../shared/reconcile/figures/tally.ts";
import { type FindingName, findingKinds } from "../../shared/reconcile/findings/findings.ts";
import { found, mended, NO_FINDINGS } from "../../shared/reconcile/findings/found.ts";
import { html } from "../../shared/reconcile/page/html.ts";
import { markdown } from "../../shared/reconcile/page/markdown.ts";
import { finding, many, report, tally } from "../support/report.ts";

const kinds = Object.keys(findingKinds) as FindingName[];

describe("the page", () => {
  const some = () =>
    found(
      NO_FINDINGS,
      finding("ack_lag", "S#1"),
      finding("orphan", "gone-on", { detail: "no message" }),
      finding("orphan", "stuck", { detail: "no message" }),
      finding("overdue", "late"),
      finding("settled_twice", "double"),
    );

  test("says what was found, the worst first, mended ones marked", () => {
    const half = mended(mended(some(), "orphan", "gone-on"), "overdue", "late");
    const text = markdown(report({ findings: half, repairs: { tasks_dispatched: 2 } }));
    expect([...text.matchAll(/^#+ .*$/gm)].map(String).slice(1, 8)).toEqual([
      "## In short",
      "## Findings",
      "### Broken: settled twice, 1 task",
      "### To do: orphan, 2 tasks, 1 of them mended",
      "### Mended: overdue, 1 task",
      "### Good to know: ack lag, 1 message",
      "## Period",
    ]);
    expect(text).toContain("Repaired: 2 tasks dispatched.");
    expect(text).toContain("| gone-on | no message | mended |");
    expect(text).toContain("| stuck | no message | not mended |");
    // Nothing was deleted: it was not to be repaired.
    expect(text).toMatch(/ack lag, 1 message\n\n.*\n\nWhat Pawl did: Nothing\./);
    const page = html(report({ findings: half }));
    expect(page).toContain('<p class="verdict broken">');
    expect(page).toContain("<li><strong>Broken:</strong> settled twice, 1 task (");
    expect(page.indexOf("Broken: settled twice")).toBeLessThan(page.indexOf("Exactly once"));
    expect(html(report({ findings: found(NO_FINDINGS, finding("in_doubt", "t")) }))).toContain(
      'class="verdict look"',
    );
  });

  test("says times and money as people write them", () => {
    const spent = { ...NO_TALLY.spent, turns: 2, inputTokens: 1_000, usd: 0.3 };
    const page = html(report({ agents: { echo: tally({ spent, runMs: { 123: 1 } }) } }));
    expect(page).toContain('<th scope="row">spent</th><td class="n">$0.30</td>');
    expect(page).toContain('<th scope="row">tokens paid</th><td class="n">1,000</td>');
    expect(page).toContain("2 min 3 s / 2 min 3 s / 2 min 3 s");
    expect(page).toContain('aria-label="Dollars spent. 2026-W46: $0.30"');
    expect(page).toContain('aria-label="Time per task, p95. 2026-W46: 1.3 s"');
  });

  test("whatever a model named something stays text, in HTML and Markdown", () => {
    const evil = `<script>alert(1)</script> | [x](javascript:alert(1)) "'&\n# head`;
    const hostile = { subject: evil, agent: evil, detail: evil };
    const findings = mended(
      found(NO_FINDINGS, finding("in_doubt", evil, hostile), finding("orphan", evil, hostile)),
      "orphan",
      evil,
    );
    const trends = [{ name: evil, figures: {} }];
    const whole = report({
      findings,
      trends,
      agents: { [evil]: tally({ failed: 1, deadLetters: { [evil]: 1 } }) },
    });
    const page = html(whole);
    expect(page).not.toMatch(/<script|<img|javascript:alert\(1\)"/);
    expect(page).toContain("&#60;script&#62;");
    expect(page).not.toMatch(/ (src|href|on\w+)=/);
    const text = markdown(whole);
    expect(text).not.toMatch(/(^|[^\\])<script|\n# head|(^|[^\\])\[x\]/);
    for (const one of [page, text]) expect(one).toContain("What exactly-once cost");
  });

  test("with every kind a hundred times, it is light enough to be mailed", () => {
    const all = kinds.flatMap((kind) => many(kind, 150).map((one) => ({ ...one, detail: "x".repeat(60) })));
    expect(html(report({ findings: found(NO_FINDINGS, ...all) })).length).toBeLessThan(25_000 * kinds.length);
  });
});
