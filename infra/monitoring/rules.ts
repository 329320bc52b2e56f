import { type Alert, alertsOfCounters, gaugeAlerts } from "./alerts.ts";
import { findingAlerts } from "./finding-alerts.ts";

export const RULES = "infra/monitoring/pawl.rules.yml";

/** Those with a runbook of their own in docs/monitoring.md. */
export const documented: readonly Alert[] = [...gaugeAlerts, ...alertsOfCounters];

const groups: Readonly<Record<string, readonly Alert[]>> = {
  "pawl-now": gaugeAlerts,
  "pawl-counters": alertsOfCounters,
  "pawl-findings": findingAlerts,
};

export const allAlerts: readonly Alert[] = Object.values(groups).flat();

export const runbookOf = ({ name, runbook }: Alert): string =>
  runbook ?? `docs/monitoring.md#${name.toLowerCase()}`;

/** Prometheus's rules, as YAML. Texts are JSON, which is YAML too. */
export function rulesText(): string {
  const text = JSON.stringify;
  const rule = (alert: Alert) => [
    `      - alert: ${alert.name}`,
    `        expr: ${text(alert.expr)}`,
    ...(alert.lasts === undefined ? [] : [`        for: ${alert.lasts}`]),
    "        labels:",
    `          severity: ${alert.severity}`,
    "        annotations:",
    `          summary: ${text(`${whose(alert)}: ${alert.summary}`)}`,
    // Links of a page lead nowhere from here.
    `          description: ${text(alert.todo.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"))}`,
    `          runbook_url: ${text(runbookOf(alert))}`,
  ];
  const lines = Object.entries(groups).flatMap(([name, alerts]) => [
    `  - name: ${name}`,
    "    rules:",
    ...alerts.flatMap(rule),
  ]);
  return `# Made by \`npm run docs\` from infra/monitoring/: what they mean is in docs/monitoring.md.\ngroups:\n${lines.join("\n")}\n`;
}

/** Of which agent it is, where its series say that. */
function whose({ expr }: Alert): string {
  return /by \(job, agent\)|^pawl_store_bytes/.test(expr) ? "{{ $labels.agent }}" : "Pawl";
}

/** The runbooks: one heading an alert, which its link leads to. */
export function runbooks(): string {
  return documented
    .map(({ name, severity, summary, todo, lasts }) => {
      const when = lasts === undefined ? severity : `${severity}, after ${lasts}`;
      return `#### ${name}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)} (${when}). ${todo}`;
    })
    .join("\n\n");
}
