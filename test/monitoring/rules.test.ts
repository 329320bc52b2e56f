import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { counterAlerts } from "../../infra/monitoring/alerts.ts";
import { dashboardText } from "../../infra/monitoring/dashboard.ts";
import { rows } from "../../infra/monitoring/panels.ts";
import { allAlerts, documented, runbookOf } from "../../infra/monitoring/rules.ts";
import { sayAlive } from "../../shared/dispatch/alive.ts";
import { type Counter, counterLabels, counters } from "../../shared/meter/counters.ts";
import { findingKinds } from "../../shared/reconcile/findings/findings.ts";
import { samples } from "../support/http/prometheus.ts";
import { webStage } from "../support/http/web.ts";
import { expression, type Selector } from "../support/promql.ts";
import { reconciled } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
/** Labels that series have, by metric. */
const served = new Map<string, Set<string>>();
const values = new Map<string, Set<string>>();

beforeAll(async () => {
  nats = await testNats();
  await using s = await webStage(nats);
  // Whoever counts one gives it just these labels, or it does not compile.
  for (const [name, labels] of Object.entries(counterLabels)) {
    const given = Object.fromEntries(labels.map((label) => [label, label === "agent" ? "tested" : "x"]));
    s.deps.meter.count(name as Counter, given as never);
  }
  await s.submit({});
  await s.drain();
  await reconciled(s.deps, { lanes: { tested: 1 } });
  await sayAlive(s.deps);
  const { text } = await s.ask("/metrics", { token: await s.token("ann", ["read"]) });
  for (const key of samples(text).keys()) {
    const [, name = "", inside = ""] = /^([a-z_]+)(?:\{(.*)\})?$/.exec(key) ?? [];
    const labels = served.get(name) ?? new Set();
    for (const [, label = "", value = ""] of inside.matchAll(/(\w+)="([^"]*)"/g)) {
      labels.add(label);
      const known = values.get(`${name} ${label}`) ?? new Set();
      values.set(`${name} ${label}`, known.add(value));
    }
    served.set(name, labels);
  }
});
afterAll(() => nats.stop());

/** What is asked for and is not there. Prometheus adds where it scraped. */
function missing(text: string): string[] {
  const { selectors, grouped } = expression(text);
  expect(selectors.length, text).toBeGreaterThan(0);
  const ofMetrics = selectors.flatMap(({ metric, matchers }: Selector) => {
    const labels = served.get(metric);
    if (!labels) return [`${metric} in ${text}`];
    return matchers
      .filter(({ label }) => !labels.has(label))
      .map(({ label }) => `${metric}{${label}} in ${text}`);
  });
  const all = new Set(selectors.flatMap(({ metric }) => [...(served.get(metric) ?? [])]));
  const ofGroups = grouped.filter((label) => label !== "job" && !all.has(label));
  return [...ofMetrics, ...ofGroups.map((label) => `by ${label} in ${text}`)];
}

describe("the rules for Prometheus", () => {
  test("ask for nothing that /metrics does not serve", () => {
    expect(allAlerts.flatMap(({ expr }) => missing(expr))).toEqual([]);
    expect(allAlerts.length).toBeGreaterThan(40);
    expect(missing('pawl_nothing{agent="a"} > 0')).toHaveLength(1);
    expect(missing('pawl_takeovers_total{why="a"} > 0')).toHaveLength(1);
    expect(missing("sum by (why) (pawl_takeovers_total)")).toHaveLength(1);
    expect(() => missing("sum by (agent (pawl_takeovers_total)")).toThrow(/no PromQL/);
  });

  test("every counter has an alert that looks at it, or a reason why it has none", () => {
    const looksAt = (name: string) => (expr: string) =>
      expression(expr).selectors.some(({ metric }) => metric === `pawl_${name}_total`);
    for (const [name, alerts] of Object.entries(counterAlerts)) {
      if ("quiet" in alerts) expect(alerts.quiet, name).toMatch(/\.$/);
      else expect(alerts.map(({ expr }) => expr).every(looksAt(name)), name).toBe(true);
    }
    expect(Object.keys(counterAlerts).sort()).toEqual(Object.keys(counters).sort());
  });

  test("every finding that is for somebody to do something about has one, and no other", () => {
    const asked = allAlerts.flatMap(({ expr }) =>
      expression(expr).selectors.flatMap(({ matchers }) =>
        matchers.filter(({ label }) => label === "finding").map(({ value }) => value),
      ),
    );
    const wanted = Object.entries(findingKinds).filter(([, { severity }]) => severity !== "note");
    expect(asked.sort()).toEqual(wanted.map(([name]) => name).sort());
    expect([...(values.get("pawl_report_findings finding") ?? [])].sort()).toEqual(asked);
    expect([...(values.get("pawl_report_findings severity") ?? [])].sort()).toEqual(["broken", "look"]);
  });

  test("each has a name of its own, and its runbook is in the docs", () => {
    expect(new Set(allAlerts.map(({ name }) => name)).size).toBe(allAlerts.length);
    for (const alert of allAlerts) {
      const [file = "", anchor = ""] = runbookOf(alert).split("#");
      const headings = readFileSync(join(import.meta.dirname, "../..", file), "utf8").matchAll(/^#+ (.*)$/gm);
      const anchors = [...headings].map(([, heading = ""]) => heading.toLowerCase().replaceAll(" ", "-"));
      expect(anchors, alert.name).toContain(anchor);
    }
    expect(documented.length).toBeGreaterThan(15);
  });
});

describe("the dashboard of Grafana", () => {
  const panels = Object.values(rows).flat();
  /** As Grafana fills them in. */
  const filled = (expr: string) =>
    expr.replaceAll("$__rate_interval", "5m").replaceAll("$__range", "6h").replaceAll("$agent", ".*");

  test("asks for nothing that /metrics does not serve, and shows every counter", () => {
    const all = panels.flatMap(({ shows }) => shows.map(([expr]) => filled(expr)));
    expect(all.flatMap(missing)).toEqual([]);
    const shown = new Set(all.flatMap((expr) => expression(expr).selectors.map(({ metric }) => metric)));
    expect(Object.keys(counters).filter((name) => !shown.has(`pawl_${name}_total`))).toEqual([]);
    const gauges = [...served.keys()].filter((name) => !name.endsWith("_total"));
    expect(gauges.filter((name) => !shown.has(name))).toEqual([]);
  });

  test("names lines by labels that are there", () => {
    for (const { shows } of panels) {
      for (const [expr, legend] of shows) {
        const { grouped } = expression(filled(expr));
        for (const [, label = ""] of legend.matchAll(/\{\{(\w+)\}\}/g))
          expect(grouped.length === 0 || grouped.includes(label), `${legend} of ${expr}`).toBe(true);
      }
    }
  });

  test("is one that Grafana can place: panels of their own, beside and below each other", () => {
    const { panels: placed } = JSON.parse(dashboardText()) as {
      panels: { id: number; type: string; gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    expect(new Set(placed.map(({ id }) => id)).size).toBe(placed.length);
    const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(placed.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
    expect(placed.filter(({ type }) => type !== "row")).toHaveLength(panels.length);
  });
});
