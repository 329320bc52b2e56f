/**
 * Writes the parts of docs/ that are printed from tables in the code, between "<!-- begin NAME -->" and
 * "<!-- end NAME -->", the links from page to page, and what Prometheus and Grafana are given. With --check it changes nothing
 * and ends with 1 if something is out of date.
 */
import { readFile, writeFile } from "node:fs/promises";
import { errorKinds } from "../shared/errors/errors.ts";
import { counters } from "../shared/meter/counters.ts";
import { type QueueField, queueFields } from "../shared/ports/queue-fields.ts";
import { findingKinds } from "../shared/reconcile/findings/findings.ts";
import { type Policy, policies } from "../shared/retry/policies.ts";
import { functionVariables } from "../shared/settings/functions.ts";
import { protocolVariables } from "../shared/settings/protocol.ts";
import { serverVariables } from "../shared/settings/servers.ts";
import { defaults, settingRules, takeoverWait, timing } from "../shared/settings/settings.ts";
import { telemetryVariables } from "../shared/settings/telemetry.ts";
import { togetherRules } from "../shared/settings/together.ts";
import { deployVariables, localVariables } from "../shared/settings/tools.ts";
import { READERS, type Variable } from "../shared/settings/variable.ts";
import { type Birth, births, stateFacts, type Transition, transitions } from "../shared/task/table.ts";
import { showDuration } from "../shared/values/duration.ts";
import { routes } from "../shared/web/api/routes.ts";
import { scopes } from "../shared/web/scopes.ts";
import { type ApplicationField, applicationFields } from "./doctor/application.ts";
import type { RuleText } from "./doctor/rule.ts";
import { contractRules, liveRules } from "./doctor/rules.ts";
import { runsOnTarget } from "./drills/facts.ts";
import { needsOf } from "./drills/report/list.ts";
import { drills } from "./drills/table.ts";
import { staleFiles } from "./monitoring/files.ts";
import { runbooks } from "./monitoring/rules.ts";
import { index, linked, pages, shortIndex, strays } from "./pages.ts";
import { exportsOf, written } from "./reference.ts";

const rules = Object.entries(transitions) as [string, Transition][];
const beginnings = Object.entries(births) as [string, Birth][];

function diagram(): string {
  const arrows = rules.flatMap(([event, { from, to }]) => {
    if (to === "same") return [];
    return from.flatMap((state) => to.map((next) => ({ state, next, event })));
  });
  const first = beginnings.flatMap(([event, { to }]) => to.map((state) => `  [*] --> ${state}: ${event}`));
  const byPair = Map.groupBy(arrows, ({ state, next }) => `${state} --> ${next}`);
  const lines = [...byPair].map(([pair, list]) => `  ${pair}: ${list.map(({ event }) => event).join(", ")}`);
  return ["```mermaid", "stateDiagram-v2", ...first, ...lines, "```"].join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function stateTable(): string {
  const rows = Object.entries(stateFacts).map(([state, { isFinal, meaning }]) => [
    `\`${state}\``,
    isFinal ? "yes" : "no",
    meaning,
  ]);
  return table(["state", "final", "meaning"], rows);
}

function events(): string {
  return table(
    ["event", "from", "to", "written by", "when"],
    [
      ...beginnings.map(([event, { to, by, meaning }]) => [
        `\`${event}\``,
        "none",
        to.join(", "),
        by,
        meaning,
      ]),
      ...rules.map(([event, { from, to, by, meaning }]) => {
        const left = from.length === 8 ? "any state" : from.join(", ");
        return [`\`${event}\``, left, to === "same" ? "the same" : to.join(", "), by, meaning];
      }),
    ],
  );
}

function errors(): string {
  return Object.entries(errorKinds)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { disposition, status, exitCode, meaning, remedy }]) => {
      const answers = `Status ${status}, exit code ${exitCode}.`;
      return `## ${code}\n\n${meaning}${fate[disposition]}\n\n**What to do:** ${remedy}\n\n${answers}`;
    })
    .join("\n\n");
}

const fate = {
  retry: " A task that meets it is tried again.",
  fail: "",
  abandon: " The task is left to whoever holds it now.",
};

function variables(list: Readonly<Record<string, Variable>>): string {
  const byDefault = ({ required, unset, default: text = "" }: Variable) =>
    required === undefined ? (unset ?? text) : "has to be set";
  return table(
    ["variable", "form", "default", "meaning", "secret", "read by"],
    Object.entries(list).map(([name, one]) => [
      `\`${name}\``,
      one.form,
      byDefault(one),
      one.meaning,
      one.secret ? "yes" : "",
      one.readBy.map((reader) => READERS[reader]).join(", "),
    ]),
  );
}

function checks(): string {
  return table(
    ["rule", "why"],
    [...settingRules, ...togetherRules].map(({ name, why }) => [name, why]),
  );
}

function drillTable(): string {
  return table(
    ["drill", "what happens", "fault", "promise", "needs", "`--target`"],
    drills.map((one) => [
      `\`${one.name}\``,
      one.what,
      one.fault,
      one.about,
      needsOf(one),
      runsOnTarget(one) ? "yes" : "",
    ]),
  );
}

function times(): string {
  const { beatEvery, leaseTime } = timing(defaults);
  return table(
    ["what follows from ack_wait", "share", "by default"],
    [
      ["a heartbeat every", "1/4", showDuration(beatEvery)],
      ["the lease after a whole heartbeat", "2/3", showDuration(leaseTime)],
      ["a successor's wait before it starts", "the lease + 10 %", showDuration(takeoverWait(leaseTime))],
    ],
  );
}

function counted(): string {
  return table(
    ["counter", "counts"],
    Object.entries(counters).map(([name, meaning]) => [`\`pawl_${name}_total\``, meaning]),
  );
}

function tokenScopes(): string {
  return table(
    ["scope", "allows"],
    Object.entries(scopes).map(([name, { allows }]) => [`\`${name}\``, allows]),
  );
}

function requests(): string {
  return table(
    ["request", "scope", "does"],
    routes.map(({ method, path, scope, query, docs }) => {
      const named = Object.keys(query?.shape ?? {}).map((name) => `${name}=`);
      const asked = named.length > 0 ? `?${named.join("&")}` : "";
      return [`\`${method.toUpperCase()} ${path}${asked}\``, scope, docs];
    }),
  );
}

function findings(): string {
  const severity = { broken: "a promise did not hold", look: "somebody has to look", note: "good to know" };
  const nature = { standing: "as it stands", happened: "as it happened" };
  return table(
    ["finding", "how bad", "counted", "what it means", "what Pawl did", "what you do"],
    Object.entries(findingKinds).map(([name, kind]) => [
      `\`${name}\``,
      severity[kind.severity],
      `${kind.of}s, ${nature[kind.nature]}`,
      kind.meaning,
      kind.did,
      kind.todo,
    ]),
  );
}

function fields(): string {
  return table(
    ["field", "of the", "what a difference can cost", "`queue_unsafe`"],
    Object.entries<QueueField>(queueFields).map(([name, { of, cost, danger }]) => [
      `\`${name}\``,
      of,
      cost,
      danger.when,
    ]),
  );
}

function application(): string {
  const formOf = ({ form, several }: ApplicationField) => {
    if (typeof form === "string")
      return { duration: "a time", number: "a number", flag: "true or false" }[form];
    const words = form.map((word) => `\`${word}\``).join(", ");
    return several ? `some of ${words}` : `one of ${words}`;
  };
  return table(
    ["of the application", "form", "what it says"],
    Object.entries<ApplicationField>(applicationFields).map(([name, field]) => [
      `\`${name}\``,
      formOf(field),
      field.meaning,
    ]),
  );
}

function doctorRules(rules: Readonly<Record<string, RuleText>>): string {
  return table(
    ["rule", "severity", "looks at", "prevents", "how to mend it"],
    Object.entries(rules).map(([id, { severity, checks, prevents, mend }]) => [
      `\`${id}\``,
      severity,
      checks,
      prevents,
      mend,
    ]),
  );
}

function retries(): string {
  const shown = (ms: number) => showDuration(ms);
  const until = ({ tries, lasts }: Policy) =>
    tries !== undefined ? `${tries} tries` : lasts !== undefined ? shown(lasts) : "as said";
  return table(
    ["policy", "pauses", "until", "what"],
    Object.entries<Policy>(policies).map(([name, policy]) => [
      `\`${name}\``,
      `${shown(policy.first)} to ${shown(policy.longest)}`,
      until(policy),
      policy.what,
    ]),
  );
}

const parts: Record<string, Record<string, () => string>> = {
  "README.md": { pages: () => shortIndex("docs") },
  "docs/README.md": { pages: () => index("docs") },
  "docs/reference.md": {
    agent: () => written(exportsOf("shared/agent.ts")),
    testing: () => written(exportsOf("shared/testing.ts")),
    client: () => written(exportsOf("shared/client.ts")),
  },
  "docs/lifecycle.md": { states: stateTable, diagram, events },
  "docs/architecture.md": { retries },
  "docs/errors.md": { errors },
  "docs/settings.md": {
    servers: () => variables(serverVariables),
    functions: () => variables(functionVariables),
    protocol: () => variables(protocolVariables),
    telemetry: () => variables(telemetryVariables),
    deploys: () => variables(deployVariables),
    local: () => variables(localVariables),
    times,
    checks,
  },
  "docs/api.md": { scopes: tokenScopes, requests, counters: counted },
  "docs/operator.md": { findings, fields },
  "docs/drills.md": { drills: drillTable },
  "docs/doctor.md": {
    application,
    doctor: () => doctorRules(contractRules),
    live: () => doctorRules(liveRules),
  },
  "docs/monitoring.md": { alerts: runbooks },
};

const stray = strays("docs");
if (stray.length > 0) {
  console.error(stray.join("\n"));
  process.exit(1);
}
const isCheck = process.argv.includes("--check");
const stale = await staleFiles(isCheck);
for (const file of new Set([...Object.keys(parts), ...pages.map(([name]) => `docs/${name}`)])) {
  const before = await readFile(file, "utf8");
  let after = before;
  for (const [name, print] of Object.entries(parts[file] ?? {})) {
    const block = new RegExp(`(<!-- begin ${name} -->\n)[\\s\\S]*?(<!-- end ${name} -->)`);
    if (!block.test(after)) throw new Error(`${file} has no place for ${name}`);
    after = after.replace(block, (_, begin: string, end: string) => `${begin}${print()}\n${end}`);
  }
  if (file.startsWith("docs/")) after = linked("docs", file.slice("docs/".length), after);
  if (after === before) continue;
  stale.push(file);
  if (!isCheck) await writeFile(file, after);
}
if (isCheck && stale.length > 0) {
  console.error(`${stale.join(", ")}: out of date. Run: npm run docs`);
  process.exitCode = 1;
}
