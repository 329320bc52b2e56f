import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { countKinds } from "./faults/disturb.ts";
import { channels } from "./faults/plan.ts";
import { regimes } from "./faults/regimes.ts";
import { perMinute } from "./progress.ts";
import { isRight, type Result, verdictOf } from "./result.ts";
import { BOUND } from "./soak.ts";

/** What it was run with, for who reads the report later. */
export interface Setting {
  readonly date: string;
  readonly seed: string;
  readonly tasks: number;
  readonly minutes: number;
  readonly versions: string;
}

export function versionsOf(natsServer: string): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const nats = /v[\d.]+/.exec(execFileSync(natsServer, ["--version"]).toString())?.[0] ?? "?";
  return `Pawl ${version}, nats-server ${nats}, Node ${process.version}, ${cpus().length} cores`;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Label and value, in the order in which they are shown. */
function rowsOf(result: Result): readonly (readonly [string, string | number])[] {
  const { judgement, explained, faults } = result;
  return [
    ...Object.entries(verdictOf(result)),
    ["tasks accepted", result.accepted],
    ["tasks a minute", perMinute(result.accepted, result.faultMs + result.calmMs)],
    ["executions beyond one a task", result.restarts],
    ["sequences explained", explained.sequences],
    ["reconciliations under faults", `${result.beside.done} (${result.beside.cut} cut off)`],
    ["with faults for", seconds(result.faultMs)],
    ["all over after the last fault in", `${seconds(result.calmMs)} (at most ${seconds(BOUND)})`],
    ["longest recovery", `${seconds(result.longestRecovery.ms)} (${result.longestRecovery.id})`],
    ["re-spent tokens", result.respentTokens],
    ["doubts, each explained by a fault", judgement.doubts],
    ["posts again under their key", result.keyed],
    ["turns sent before a freeze, arrived after", judgement.late],
    ["findings that a fault explains", explained.legitimate.length],
    ["runners that found no server", result.endedThemselves],
    ["longest pause of the observer", seconds(result.blinkMs)],
    ...Object.entries(countKinds(faults)),
  ];
}

function wrongOf({ judgement, explained, evidence }: Result): string[] {
  return [
    ...judgement.wrong.map(({ kind, id, detail }) => `${kind}: ${id}: ${detail}`),
    ...explained.falseAlarms.map((text) => `false alarm: ${text}`),
    ...(evidence ? [`kept: ${evidence}`] : []),
  ];
}

const MOST_WRONG = 20;

export function asText(setting: Setting, results: readonly Result[]): string[] {
  const { date, seed, tasks, minutes, versions } = setting;
  return [
    `Soak of ${date}, seed ${seed}, up to ${tasks} tasks and ${minutes} min of faults each. ${versions}`,
    ...results.flatMap((result) => [
      "",
      `${result.regime}: ${regimes[result.regime].meaning}: ${isRight(result) ? "nothing wrong" : "WRONG"}`,
      ...rowsOf(result).map(([label, value]) => `  ${label.padEnd(40)} ${value}`),
      ...wrongOf(result)
        .slice(0, MOST_WRONG)
        .map((line) => `  ! ${line}`),
    ]),
  ];
}

export function asMarkdown(setting: Setting, results: readonly Result[]): string {
  const { date, seed, tasks, minutes, versions } = setting;
  const rows = results.map(rowsOf);
  const labels = [...new Set(rows.flatMap((all) => all.map(([label]) => label)))];
  const cell = (all: (typeof rows)[number], label: string) => all.find(([name]) => name === label)?.[1] ?? "";
  const every = Object.entries(channels).map(
    ([
      name,
      {
        every: [least, most],
      },
    ]) => `${name} every ${least / 1000} to ${most / 1000} s`,
  );
  return [
    `# Soak of ${date}`,
    "",
    `Seed \`${seed}\`, up to ${tasks} tasks and ${minutes} min of faults in each regime. ${versions}.`,
    `ack_wait 3 s. Faults: ${every.join(", ")}.`,
    "",
    `| | ${results.map(({ regime }) => regime).join(" | ")} |`,
    `|---|${results.map(() => "---").join("|")}|`,
    ...labels.map((label) => `| ${label} | ${rows.map((all) => cell(all, label)).join(" | ")} |`),
    "",
    ...results.flatMap(wrongOf).map((line) => `- ${line}`),
    ...results.flatMap(faultList),
    "",
  ].join("\n");
}

function faultList({ regime, faults, begun }: Result): string[] {
  const lines = faults.map(({ kind, at, until, whom, pid }) => {
    const lasted = until > at ? ` for ${seconds(until - at)}` : "";
    return `${seconds(at - begun)} ${kind} ${whom ?? pid ?? ""}${lasted}`;
  });
  return ["", `## Faults of ${regime}`, "", ...lines.map((line) => `- ${line}`)];
}
