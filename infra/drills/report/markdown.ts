import type { Result } from "../run.ts";
import type { Evidence } from "./evidence.ts";
import { figureRows, ownSettings, PROMISES } from "./text.ts";

/** In a table's cell, and anywhere: what a model or a stranger wrote is text. */
const cell = (text: string) =>
  text.replace(/[\\`*_{}[\]<>|#]/g, (char) => `\\${char}`).replaceAll(/\s+/g, " ");

/** The evidence as Markdown. */
export function markdown({
  settings,
  date,
  seconds,
  where,
  verdict,
  versions,
  results,
  left,
  promises,
}: Evidence): string {
  const lines = [
    "# Drills",
    "",
    `**${cell(verdict)}**`,
    "",
    `- when: ${date}, ${seconds} s`,
    `- where: ${cell(where)}`,
    ...Object.entries(versions).map(([name, version]) => `- ${name}: ${cell(version)}`),
    "",
    ...PROMISES.map((name, i) => `${i + 1}. *${name}*: ${promises[name]}`),
    "",
    `| drill | fault | verdict | seconds | ${PROMISES.join(" | ")} |`,
    `| --- | --- | --- | ---: |${" --- |".repeat(PROMISES.length)}`,
    ...results.map(row),
    ...left.map((one) => `| ${one.name} | ${one.fault} | not run | |${"  |".repeat(PROMISES.length)}`),
    "",
    ...results.flatMap(section),
    "## Settings",
    "",
    "A drill that has others names them in its own section.",
    "",
    ...Object.entries(settings).map(([name, value]) => `- \`${name}=${cell(value)}\``),
  ];
  return `${lines.join("\n")}\n`;
}

function row({ drill, fate, seconds, judgement }: Result): string {
  const marks = PROMISES.map((name) => judgement?.promises.find(({ promise }) => promise === name)?.holds);
  const said = marks.map((holds) => (holds === undefined ? "" : holds ? "holds" : "**broken**"));
  return `| ${drill.name} | ${drill.fault} | ${fate} | ${seconds} | ${said.join(" | ")} |`;
}

function section({
  drill,
  fate,
  why,
  judgement,
  figures,
  reconciled,
  findings = [],
  told,
}: Result): string[] {
  return [
    `## ${drill.name}: ${fate}`,
    "",
    `${cell(drill.what)}.`,
    "",
    ...(drill.env ? [`With ${cell(ownSettings(drill))}.`, ""] : []),
    ...(why === undefined ? [] : [cell(why), ""]),
    ...(judgement?.broken ?? []).map(({ promise, detail }) => `- **${promise}**: ${cell(detail)}`),
    ...told.map((line) => `- ${cell(line)}`),
    ...(reconciled === undefined ? [] : [`- the reconciliation: ${cell(reconciled)}`]),
    ...findings.map((one) => `- it names: ${cell(one)}`),
    "",
    ...(figures
      ? [
          "| | |",
          "| --- | --- |",
          ...figureRows(figures).map(([what, value]) => `| ${what} | ${value} |`),
          "",
        ]
      : []),
  ];
}
