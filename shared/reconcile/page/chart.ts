import type { Trend } from "../figures/report.ts";
import { text } from "./text.ts";

/** Of the drawing, in its own units; the bars stand right of the axis' labels, and below their own. */
const [LEFT, TOP, RIGHT, BOTTOM] = [44, 16, 340, 116];
const [WIDTH, HEIGHT] = [344, 136];
/** Few bars are not as wide as the page. */
const WIDEST = 44;

export interface Figure {
  readonly name: string;
  readonly label: string;
  /** A value in full, for those who hear it… */
  readonly show: (value: number) => string;
  /** …and as short as an axis needs it. */
  readonly brief: (value: number) => string;
}

/**
 * One figure, week by week, as SVG that needs nothing else: an axis from nothing to a round number, a bar for each week with
 * its value on top and its week below. A week that did not count the figure has no bar.
 */
export function chart(trends: readonly Trend[], { name, label, show, brief }: Figure): string {
  const values = trends.map(({ figures }) => figures[name]);
  const most = ceiling(Math.max(...values.map((value) => value ?? 0)));
  const step = Math.min(WIDEST, (RIGHT - LEFT) / Math.max(1, values.length));
  const heightOf = (value: number) => (value / most) * (BOTTOM - TOP);
  const bars = values.map((value, i) => {
    const middle = LEFT + (i + 0.5) * step;
    const week = `<text class="tick" x="${place(middle)}" y="${BOTTOM + 14}" text-anchor="middle">${text(shortName(trends[i] as Trend))}</text>`;
    if (value === undefined) return week;
    const top = BOTTOM - Math.max(value > 0 ? 1.5 : 0, heightOf(value));
    const bar = `<rect x="${place(middle - step * 0.36)}" y="${place(top)}" width="${place(step * 0.72)}" height="${place(BOTTOM - top)}" rx="1.5"/>`;
    return `${bar}<text class="value" x="${place(middle)}" y="${place(top - 3)}" text-anchor="middle">${text(brief(value))}</text>${week}`;
  });
  const lines = [0, most / 2, most].map((value) => {
    const y = place(BOTTOM - heightOf(value));
    return `<line x1="${LEFT}" x2="${RIGHT}" y1="${y}" y2="${y}"/><text class="tick" x="${LEFT - 5}" y="${place(Number(y) + 3)}" text-anchor="end">${text(brief(value))}</text>`;
  });
  const told = trends.map((one, i) => `${one.name}: ${said(values[i], show)}`).join(", ");
  return `<svg role="img" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-label="${text(`${label}. ${told}`)}">${lines.join("")}${bars.join("")}</svg>`;
}

const said = (value: number | undefined, show: Figure["show"]) =>
  value === undefined ? "not counted" : show(value);
const place = (value: number) => value.toFixed(1);
/** Below its bar a week needs no year: "W46". A month keeps its own: "11". */
const shortName = ({ name }: Trend) => name.replace(/^\d{4}-/, "").slice(0, 6);

/** The next number that an axis may end with: 1, 2 or 5 with zeros. */
export function ceiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((one) => one * power >= value) ?? 10) * power;
}
