import { expect, test } from "vitest";
import type { Evidence } from "../../infra/drills/report/evidence.ts";
import { html } from "../../infra/drills/report/html.ts";
import { markdown } from "../../infra/drills/report/markdown.ts";
import { resultLines, verdictLine } from "../../infra/drills/report/text.ts";
import type { Result } from "../../infra/drills/run.ts";
import { drills } from "../../infra/drills/table.ts";

const HOSTILE = `<script>alert("x")</script> | & 'y' \`z\``;
const [drill] = drills as [Result["drill"]];
const held: Result = { drill, fate: "held", seconds: 1, told: [] };
const broken: Result = {
  drill,
  fate: "broken",
  seconds: 2,
  judgement: {
    promises: [{ promise: "no overlap", holds: false }],
    broken: [{ promise: "no overlap", detail: HOSTILE }],
  },
  reconciled: HOSTILE,
  findings: [HOSTILE],
  told: [HOSTILE],
};
const failed: Result = { drill, fate: "failed", seconds: 3, why: HOSTILE, told: [] };
const evidence: Evidence = {
  date: "2026-11-19T22:00:00.000Z",
  seconds: 6,
  where: HOSTILE,
  verdict: verdictLine([held, broken, failed]),
  settings: { PAWL_AGENT_QUOTA: HOSTILE },
  versions: { Pawl: HOSTILE },
  promises: { "no overlap": "x" },
  results: [held, broken, failed],
  left: drills.slice(1, 2),
};

test("what a server or a stranger said is text in both forms of the evidence", () => {
  const page = html(evidence);
  expect(page).not.toContain("<script");
  expect(page).toContain("&#60;script&#62;");
  const text = markdown(evidence);
  expect(text).not.toContain("<script>alert");
  // In a table's row a bar of theirs would be another cell.
  for (const row of text.split("\n").filter((line) => line.startsWith("| crash")))
    expect(row.match(/(?<!\\)\|/g)).toHaveLength(10);
});

test("the last line says what held, what was broken and in which drill, and what proves nothing", () => {
  expect(verdictLine([held, held])).toBe("All five promises held in 2 of 2 drills.");
  expect(verdictLine([held, broken, failed])).toBe(
    `BROKEN in 1 of 2 drills: no overlap (${drill.name}). Not carried out: ${drill.name}.`,
  );
  expect(verdictLine([failed])).toBe(
    `No drill was carried out to its end: nothing is proven. Not carried out: ${drill.name}.`,
  );
  expect(resultLines(broken)[1]).toContain("no overlap: <script>");
});
