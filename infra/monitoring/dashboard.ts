import { type Panel, rows } from "./panels.ts";

export const DASHBOARD = "infra/monitoring/pawl.dashboard.json";

const COLUMNS = 24;
const WIDTH = 6;
const HEIGHT = 7;
const SOURCE = { type: "prometheus", uid: "$source" };

/** What Grafana imports. */
export function dashboardText(): string {
  let y = 0;
  let id = 0;
  const panels = Object.entries(rows).flatMap(([title, shown]) => {
    const head = {
      id: ++id,
      type: "row",
      title,
      collapsed: false,
      gridPos: { x: 0, y: y++, w: COLUMNS, h: 1 },
      panels: [],
    };
    let x = 0;
    const placed = shown.map((panel) => {
      const { width: w = WIDTH } = panel;
      if (x + w > COLUMNS) [x, y] = [0, y + HEIGHT];
      const drawn = { id: ++id, ...drawnAs(panel), gridPos: { x, y, w, h: HEIGHT } };
      x += w;
      return drawn;
    });
    y += HEIGHT;
    return [head, ...placed];
  });
  const variables = [
    { name: "source", label: "Source", type: "datasource", query: "prometheus", current: {} },
    {
      name: "agent",
      label: "Agent",
      type: "query",
      datasource: SOURCE,
      query: { query: "label_values(pawl_queue_pending, agent)", refId: "agent" },
      refresh: 2,
      multi: true,
      includeAll: true,
      allValue: ".*",
      current: { text: "All", value: "$__all" },
    },
  ];
  const dashboard = {
    uid: "pawl",
    title: "Pawl",
    description: "Made by `npm run docs`: docs/monitoring.md",
    tags: ["pawl"],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    time: { from: "now-6h", to: "now" },
    refresh: "1m",
    templating: { list: variables },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function drawnAs({ title, says, as: type = "timeseries", unit, shows }: Panel) {
  const isNow = type !== "timeseries";
  return {
    type,
    title,
    description: says,
    datasource: SOURCE,
    fieldConfig: { defaults: { unit, ...(unit !== "percentunit" && { min: 0 }) }, overrides: [] },
    options:
      type === "stat"
        ? { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "value", graphMode: "none" }
        : {},
    targets: shows.map(([expr, legendFormat], i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: SOURCE,
      expr,
      legendFormat,
      ...(isNow && { instant: true, range: false }),
      ...(type === "table" && { format: "table" }),
    })),
  };
}
