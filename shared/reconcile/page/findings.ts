import { counted, nameOf, number, type Report } from "../figures/report.ts";
import type { Finding, FindingName, Findings } from "../findings/findings.ts";
import { amountIn, kindOf, kindsBySeverity, leftOf } from "../findings/found.ts";
import type { Section } from "./section.ts";

/** What was found, the worst first: each kind with what it means and what to do, then the ones it is about. */
export function findingSections({ findings, repairs }: Report): Section[] {
  const kinds = kindsBySeverity(findings);
  if (kinds.length === 0) return [{ title: "Findings", lines: ["None."] }];
  const repaired = Object.entries(repairs).map(([what, count]) => `${number(count)} ${nameOf(what)}`);
  return [
    { title: "Findings", lines: [`Repaired: ${repaired.join(", ") || "nothing"}.`] },
    ...kinds.map((kind) => kindSection(kind, findings)),
  ];
}

function kindSection(kind: FindingName, findings: Findings): Section {
  const { of, meaning, mendedBy, todo } = kindOf(kind);
  const named = findings.named.filter((one) => one.kind === kind);
  const [count, mended] = [findings.counts[kind] ?? 0, findings.mended?.[kind] ?? 0];
  const some = mended > 0 && mended < count ? `, ${number(mended)} of them mended` : "";
  const hidden = count - amountIn(named);
  const state = ({ mended: isMended }: Finding) => (isMended ? "mended" : "not mended");
  return {
    title: `${wordOf(kind, findings)}: ${nameOf(kind)}, ${counted(count, of)}${some}`,
    isPart: true,
    lines: [
      meaning,
      `What Pawl did: ${whatWasDone(kind, count, mended)}`,
      `What is left to you: ${todo}`,
      ...(hidden > 0 ? [`${number(hidden)} more are counted, and not named here.`] : []),
    ],
    head: mendedBy ? ["which", "detail", "now"] : ["which", "detail"],
    rows: named.map((one) => [one.subject, one.detail, ...(mendedBy ? [state(one)] : [])]),
  };
}

/** How bad it is still. */
function wordOf(kind: FindingName, findings: Findings): string {
  const { severity } = kindOf(kind);
  if (severity === "note") return "Good to know";
  if (leftOf(findings, kind) === 0) return "Mended";
  return severity === "broken" ? "Broken" : "To do";
}

/** What a repair would do was not done where it mended nothing. */
function whatWasDone(kind: FindingName, count: number, mended: number): string {
  const { did, mendedBy } = kindOf(kind);
  if (!mendedBy || mended === count) return did;
  return mended === 0 ? "Nothing." : `${did} Only those that are mended.`;
}
