import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { Fatal } from "../../shared/agent.ts";
import { readReportList, textName } from "../../shared/reconcile/books/reports.ts";
import { readText } from "../../shared/reconcile/books/texts.ts";
import type { Report } from "../../shared/reconcile/figures/report.ts";
import { headlines } from "../../shared/reconcile/page/headlines.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf, bench } from "../support/bench.ts";
import { reconciled } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTE = 60_000;
const WEEK = 7 * 24 * 60 * MINUTE;
const WEEKS = 14;

interface Input {
  readonly turns: number;
  readonly fails: boolean;
}

const agent = agentOf(
  async ({ input, llm }) => {
    const { turns, fails } = input as Input;
    for (let n = 0; n < turns; n++) await llm(`ask ${n}`, { model: "claude-sonnet-5-5", prompt: "?" });
    if (fails) throw new Fatal("no such user");
  },
  { attempts: 1 },
);
/** $2 a turn. */
const answer = {
  content: [{ type: "text" as const, text: "!" }],
  usage: { input_tokens: 1_000_000, output_tokens: 0 },
};

test("fourteen weeks of reconciliations: each report is compared with the one before, and shows the last twelve", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  Object.assign(b.deps, { model: scripted(() => answer) });
  const { deps } = b;
  const pass = travel(deps);
  /** What came in a week: tasks that complete, how often each is submitted again, dead letters, minutes in the queue. */
  const work = async (week: number, tasks: number, again: number, failed: number, minutes: number) => {
    const one = (id: string, fails: boolean) => b.submit({ turns: 1, fails }, { id: `w${week}-${id}` });
    for (let n = 0; n < tasks; n++) for (let i = 0; i <= again; i++) await one(`t${n}`, false);
    for (let n = 0; n < failed; n++) await one(`f${n}`, true);
    pass(minutes * MINUTE);
    await b.drain();
  };
  const reports: Report[] = [];
  for (let week = 1; week <= WEEKS; week++) {
    if (week < WEEKS - 1) await work(week, 1, 0, 0, 1);
    else if (week === WEEKS - 1) await work(week, 2, 1, 1, 2);
    else await work(week, 3, 2, 1, 32);
    pass(WEEK);
    reports.push((await reconciled(deps)).report);
  }
  const names = reports.map(({ name }) => name);
  expect(new Set(names).size).toBe(WEEKS);
  // The first has nothing to be compared with; each later one has those before it, the oldest first, and itself as the last.
  for (const [i, { trends }] of reports.entries())
    expect(trends.map(({ name }) => name)).toEqual(names.slice(Math.max(0, i - 11), i + 1));
  expect(reports.at(-1)?.trends.map(({ figures }) => figures.completed)).toEqual([
    ...Array(10).fill(1),
    2,
    3,
  ]);
  const changes = (report?: Report) => report && headlines(report).map(({ change }) => change);
  expect(changes(reports[0])).toEqual(Array(5).fill(undefined));
  expect(changes(reports[2])?.slice(0, 4)).toEqual(Array(4).fill(`as in ${names[1]}`));
  expect(changes(reports.at(-1))).toEqual([
    `+50 % (2 in ${names.at(-2)})`,
    `as in ${names.at(-2)}`,
    `+200 % (2 in ${names.at(-2)})`,
    `+33 % ($6.00 in ${names.at(-2)})`,
    expect.stringMatching(`^\\+1,\\d{3} % \\(2 min \\d+ s in ${names.at(-2)}\\)$`),
  ]);

  const { reports: listed } = await readReportList(deps.store);
  const page = async (name: string, format: "html" | "json") => {
    const one = listed.find((other) => other.name === name);
    return (one && (await readText(deps.store, textName(one, format)))) ?? "";
  };
  expect(await page(names.at(-1) as string, "html")).toContain("<h2>The last 12 weeks</h2>");
  expect(await page(names.at(2) as string, "html")).toContain("<h2>The last 3 weeks</h2>");
  expect(await page(names.at(0) as string, "html")).toContain("<h2>This week</h2>");
  // Months are compared with months.
  const months = listed
    .map(({ name }) => name)
    .filter((name) => !name.includes("W"))
    .reverse();
  expect(months.length).toBeGreaterThan(2);
  const last = JSON.parse(await page(months.at(-1) as string, "json")) as Report;
  expect(last.trends.map(({ name }) => name)).toEqual(months);
});
