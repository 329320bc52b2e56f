import type { Result } from "./report.ts";
import type { Row } from "./spread.ts";

const [WIDTH, LEFT, RIGHT, LINE, TOP] = [900, 430, 110, 24, 56];
const COLOURS = { held: "#2a7f4f", missed: "#b3402e", printed: "#5b6b7f" } as const;

const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Ratios, one a line, on a scale where half and double are as far from 1. */
export function asSvg({ machine, rows, rounds }: Result): string {
  const shown = rows.filter(({ ratio }) => ratio && ratio.least > 0 && Number.isFinite(ratio.most));
  const logs = shown
    .flatMap(({ ratio, required }) => (ratio ? [ratio.least, ratio.most, limitOf(required) ?? 1] : []))
    .map(Math.log2);
  const [from, to] = [Math.min(-1, ...logs) - 0.1, Math.max(1, ...logs) + 0.1];
  const x = (ratio: number) => LEFT + ((Math.log2(ratio) - from) / (to - from)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + shown.length * LINE + 24;
  const ticks = Array.from(
    { length: Math.floor(to) - Math.ceil(from) + 1 },
    (_, i) => 2 ** (Math.ceil(from) + i),
  );
  const grid = ticks.map((tick) => {
    const colour = tick === 1 ? "#222" : "#ddd";
    return `<line x1="${at(x(tick))}" y1="${TOP - 8}" x2="${at(x(tick))}" y2="${height - 20}" stroke="${colour}"/><text x="${at(x(tick))}" y="${height - 6}" text-anchor="middle" fill="#555">${tick} ×</text>`;
  });
  const heading = `Pawl by what it is measured against, ${machine.date.slice(0, 10)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${escaped(heading)}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="12" y="22" font-size="15" fill="#222">${escaped(heading)}</text>`,
    `<text x="12" y="40" fill="#555">Medians of ${rounds} rounds and their spread on ${machine.cores} cores. Green: as required. Red: missed. Grey: nothing required.</text>`,
    ...grid,
    ...shown.map((row, index) => line(row, TOP + index * LINE + LINE / 2, x)),
    "</svg>",
    "",
  ].join("\n");
}

/** Of a ratio; a figure that is bound itself has none. */
const limitOf = (required: string | undefined) =>
  required === undefined ? undefined : Number(/[\d.]+/.exec(required)?.[0]);

const at = (value: number) => value.toFixed(1);

function line(
  { bench, what, unit, against, ratio, required, isHeld }: Row,
  y: number,
  x: (ratio: number) => number,
) {
  if (!ratio) return "";
  const colour = COLOURS[isHeld === undefined ? "printed" : isHeld ? "held" : "missed"];
  const isRate = unit === "/s";
  const label = `${what} : ${against?.name}`;
  const limit = limitOf(required);
  const mark = limit
    ? `<line x1="${at(x(limit))}" y1="${y - 9}" x2="${at(x(limit))}" y2="${y + 9}" stroke="#222" stroke-dasharray="2 2"/>`
    : "";
  return [
    `<text x="${LEFT - 10}" y="${y + 4}" text-anchor="end" fill="#222">${escaped(label)}<title>${escaped(`${bench}: ${isRate ? "more is better" : "less is better"}`)}</title></text>`,
    `<line x1="${at(x(ratio.least))}" y1="${y}" x2="${at(x(ratio.most))}" y2="${y}" stroke="${colour}" stroke-width="2"/>`,
    `<circle cx="${at(x(ratio.median))}" cy="${y}" r="5" fill="${colour}"/>${mark}`,
    `<text x="${WIDTH - RIGHT + 12}" y="${y + 4}" fill="${colour}">${ratio.median.toFixed(2)} ×${escaped(required ? ` (${required.replace(" ×", "")})` : "")}</text>`,
  ].join("");
}
