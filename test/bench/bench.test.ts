import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { benches } from "../../bench/benches.ts";
import { asSvg } from "../../bench/chart.ts";
import { asMarkdown, type Result } from "../../bench/report.ts";
import { type Row, rowOf } from "../../bench/spread.ts";
import { startProcess } from "../support/servers/runners.ts";
import { until } from "../support/time/until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const emptyFolder = () => mkdtempSync(join(tmpdir(), "pawl-test-"));
const bench = (args: string, folder = tmpdir()) =>
  startProcess([join(root, "bench/main.ts"), ...args.split(" ")], {
    PAWL_NATS_SERVER: inject("natsServer"),
    TMPDIR: folder,
  });

test("a try of one bench: ratios in JSON, quiet when piped, kept only where it was told, and nothing is left", async () => {
  const [folder, out] = [emptyFolder(), emptyFolder()];
  const run = bench(`--only noop-1 --rounds 1 --scale 0.05 --json --out ${out}`, folder);
  const code = await run.exited;
  // Only the answer.
  const { machine, rounds, rows, notRun } = JSON.parse(run.text()) as Result;
  const [row] = rows as [Row];
  expect({ rounds, notRun, count: rows.length }).toEqual({ rounds: 1, notRun: [], count: 2 });
  expect(row).toMatchObject({
    bench: "noop-1",
    unit: "/s",
    rounds: 1,
    against: { name: "bare loop" },
    required: ">= 1 ×",
    isHeld: code === 0,
  });
  expect([0, 1]).toContain(code);
  expect(row.ratio?.median).toBeCloseTo(row.pawl.median / (row.against?.median ?? 0), 6);
  expect(machine).toMatchObject({ cores: expect.any(Number), versions: { Node: process.version.slice(1) } });
  const [svg = "", md = ""] = readdirSync(out).toSorted((a, b) => b.localeCompare(a));
  expect(readFileSync(join(out, md), "utf8")).toContain(`![Ratios](${svg})`);
  expect(readFileSync(join(out, svg), "utf8")).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  expect(readdirSync(folder)).toEqual([]);
});

test("used wrongly, it ends with 2; its help has an example and names every bench", async () => {
  const runs = ["--only moon", "--rounds 0", "--rounds x", "--scale 2", "now"].map((args) => bench(args));
  for (const run of runs) expect(await run.exited, run.text()).toBe(2);
  const help = bench("--help");
  expect(await help.exited).toBe(0);
  expect(help.text()).toContain("npm run bench -- --only noop-1,noop-16 --peers");
  for (const name of Object.keys(benches)) expect(help.text()).toMatch(new RegExp(`^  ${name} `, "m"));
});

test("Ctrl-C leaves no process and no folder", async () => {
  const folder = emptyFolder();
  const run = bench("--only noop-1", folder);
  // Its servers name the folder in their arguments.
  const servers = () => execFileSync("ps", ["axww"]).toString().split(`${folder}/pawl-bench`).length - 1;
  await until("a server runs", async () => servers() > 0);
  run.child.kill("SIGINT");
  expect(await run.exited, run.text()).toBe(130);
  await until("no server runs", async () => servers() === 0);
  expect(readdirSync(folder)).toEqual([]);
});

test("a ratio is the median of the rounds' own, and is held to what is required of it", () => {
  const figure = { what: "tasks", unit: "/s", pawl: [10, 30, 20], required: { least: 1 } } as const;
  const against = { name: "bare", values: [20, 20, 20] };
  expect(rowOf("one", { ...figure, against })).toMatchObject({
    pawl: { median: 20, least: 10, most: 30 },
    ratio: { median: 1, least: 0.5, most: 1.5 },
    required: ">= 1 ×",
    isHeld: true,
  });
  expect(rowOf("one", { ...figure, against: { ...against, values: [20, 40, 30] } }).isHeld).toBe(false);
  const bound = { what: "heap", unit: "MB", pawl: [3, 5], bound: { most: 4 } } as const;
  expect(rowOf("one", bound)).toMatchObject({ required: "<= 4 MB", isHeld: true });
  expect(rowOf("one", { what: "seeds", unit: "/s", pawl: [1] })).not.toHaveProperty("isHeld");
});

test("a result says nothing of whose machine it is, and shows what was missed and what was not run", () => {
  const row = rowOf("one", {
    what: "a <b>",
    unit: "ms",
    pawl: [2],
    against: { name: "bare", values: [1] },
    required: { most: 1.5 },
  });
  const versions = { Node: "24", "nats-server": "2" };
  const machine = {
    date: "2026-01-02T03:04",
    processor: "p",
    cores: 2,
    memoryGb: 4,
    load: { before: 0.5, after: 1 },
    versions,
  };
  const result = {
    machine,
    rounds: 5,
    rows: [row],
    notRun: [{ bench: "two", why: "no emulator", isFailure: false }],
  };
  const text = asMarkdown(result, "chart.svg");
  expect(text).toContain(
    "| one | a <b> | 2 ms (2 to 2) | bare | 1 ms (1 to 1) | 2.00 × (2.00 to 2.00) | <= 1.5 × | MISSED |",
  );
  expect(text).toContain("- two: not run. no emulator");
  expect(asSvg(result)).toContain("a &#60;b&#62; : bare");
});

test("docs/bench.md has the table of benches", () => {
  const page = readFileSync(join(root, "docs/bench.md"), "utf8");
  const rows = Object.entries(benches).map(
    ([name, { what, floor, required }]) => `| \`${name}\` | ${what} | ${floor} | ${required} |`,
  );
  expect(page).toContain(
    ["| bench | what | against | must be |", "| --- | --- | --- | --- |", ...rows].join("\n"),
  );
});

test("the peers' lock file names no registry, and has what the peers' package.json has", () => {
  const read = (file: string) => readFileSync(join(root, "bench/peers", file), "utf8");
  expect(read("package-lock.json")).not.toContain('"resolved"');
  const { dependencies } = JSON.parse(read("package.json"));
  expect(JSON.parse(read("package-lock.json")).packages[""].dependencies).toEqual(dependencies);
});
