import type { Trend } from "../figures/report.ts";
import { text } from "./text.ts";

const WIDTH = 180;
const HEIGHT = 40;

/** A small chart of one figure, week by week, as SVG that needs nothing else. `show` writes a value for those who hear it. */
export function chart(trends: readonly Trend[], figure: string, show: (value: number) => string): string {
  const values = trends.map(({ figures }) => figures[figure] ?? 0);
  const most = Math.max(...values, 1e-9);
  const step = WIDTH / Math.max(1, values.length);
  const bars = values.map((value, i) => {
    const height = Math.max(value > 0 ? 1.5 : 0, (value / most) * (HEIGHT - 2));
    const x = (i * step + 1).toFixed(1);
    return `<rect x="${x}" y="${(HEIGHT - height).toFixed(1)}" width="${(step - 2).toFixed(1)}" height="${height.toFixed(1)}" rx="1"/>`;
  });
  const told = trends.map(({ name }, i) => `${name}: ${show(values[i] as number)}`).join(", ");
  return `<svg role="img" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" aria-label="${text(told)}">${bars.join("")}</svg>`;
}
